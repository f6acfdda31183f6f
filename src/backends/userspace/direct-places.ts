import { type Family, isLinkLocalIPv6 } from '../../model/ip.ts';
import { nodePortIPs } from '../../model/node-port-addresses.ts';
import type { Frontend } from '../../plan/frontend.ts';
import type { EndpointList } from '../../plan/service-plan.ts';
import { anyAddress } from './frontends.ts';
import type { Place } from './proxy-sockets.ts';
import type { UserspaceSettings } from './settings.ts';

/** A listener for one frontend, and the places to try for it in turn. */
export interface Listening {
  readonly frontend: Frontend;
  readonly list: EndpointList;
  readonly places: readonly Place[];
}

/** Where to listen for a frontend while its packets cannot be captured; nowhere when no address of it is ours. */
export function listeningsOf(
  frontend: Frontend,
  addresses: readonly string[],
  settings: Pick<UserspaceSettings, 'family' | 'nodePortAddresses'>,
): Listening[] {
  const { kind, address: ip, port, endpoints: list } = frontend;
  if (!list) return [];
  const at = (...places: Place[]): Listening => ({ frontend, list, places });
  if (kind === 'node port') {
    return nodePortPlaces(frontend, addresses, settings).map((address) => at({ ip: address, port }));
  }
  if (addresses.includes(ip)) return [at({ ip, port })];
  if (kind !== 'cluster IP') return [];
  const loopback = loopbackOf(settings.family);
  return [at({ ip: loopback, port }, { ip: loopback, port: 'pool' })];
}

/** Identifies the listener within its service port. */
export function listeningName({ frontend, list, places }: Listening): string {
  return `${frontend.name} ${list} ${places[0]?.ip}`;
}

/** The name of the frontend that a listener, by its own name, is for. */
export function frontendOfListening(name: string): string {
  return name.split(' ', 1)[0] ?? '';
}

/** A datagram is answered from the address that it was sent to only when its socket is bound to that. */
function nodePortPlaces(
  { protocol }: Frontend,
  addresses: readonly string[],
  { family, nodePortAddresses }: Pick<UserspaceSettings, 'family' | 'nodePortAddresses'>,
): string[] {
  if (nodePortAddresses.matchAll && protocol === 'TCP') return [anyAddress(family)];
  // Listening at a link-local address requires naming the link.
  return nodePortIPs(nodePortAddresses, addresses).filter((address) => !isLinkLocalIPv6(address));
}

function loopbackOf(family: Family): string {
  return family === 'IPv4' ? '127.0.0.1' : '::1';
}
