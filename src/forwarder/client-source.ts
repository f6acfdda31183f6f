import { cidrContains, type Family, isLinkLocalIPv6, parseCIDR, toIP } from '../model/ip.ts';
import { loadSockets } from '../native/koffi-sockets.ts';
import {
  AF_INET,
  AF_INET6,
  IP_BIND_ADDRESS_NO_PORT,
  IP_TRANSPARENT,
  IPPROTO_IP,
  IPPROTO_IPV6,
  IPV6_TRANSPARENT,
  SO_MARK,
  SO_ORIGINAL_DST,
  SOCK_STREAM,
  SOL_SOCKET,
  type Sockets,
} from '../native/sockets.ts';
import { errnoName } from '../native/system-error.ts';
import type { KeptSources } from './forwarder.ts';
import { addressBytes, decodeAddress, domainOfBytes, withoutPort } from './socket-address.ts';

/**
 * Packets of connections that are made from a client's address carry this mark. The caller that asks for such connections
 * needs rules that bring the answers here, because the endpoint sends them to the client. Kubernetes, Calico, Cilium,
 * Istio and Weave use other bits.
 */
export const clientSourceMark = 0x1000;

/** Whether endpoints see the address of this client, whose packets were sent to this address. */
export function isSourceKept({ of, at }: KeptSources, client: string, sentTo: string | undefined): boolean {
  if (at !== undefined && at !== sentTo) return false;
  const network = parseCIDR(of);
  // A link-local address means another host on another link.
  return network !== undefined && !isLinkLocalIPv6(client) && cidrContains(network, toIP(client));
}

/**
 * Whether endpoints see the address of this client. `fd`: its connection; a datagram has none, and `at` then admits
 * nobody. If the kernel does not tell where the client connected to, `onUnknown` is called, and endpoints see the client: the
 * node's address instead could bypass a network policy.
 */
export function keepsSource(
  sockets: Sockets,
  kept: KeptSources | undefined,
  client: Uint8Array,
  fd?: number,
  onUnknown?: (errno: number) => void,
): boolean {
  if (kept === undefined) return false;
  const { ip } = decodeAddress(client);
  if (kept.at === undefined || fd === undefined) return isSourceKept(kept, ip, undefined);
  if (!isSourceKept({ of: kept.of }, ip, undefined)) return false;
  const sentTo = new Uint8Array(client.length);
  const level = domainOfBytes(client) === AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
  const result = sockets.getOption(fd, level, SO_ORIGINAL_DST, sentTo);
  if (result >= 0) return decodeAddress(sentTo).ip === kept.at;
  onUnknown?.(-result);
  return true;
}

/** Whether an endpoint has another address than the client. If it has the same, it would answer itself. */
export function isOtherHost(client: Uint8Array, endpoint: Uint8Array): boolean {
  const [from, to] = [addressBytes(client), addressBytes(endpoint)];
  return from.length === to.length && from.some((byte, i) => byte !== to[i]);
}

/**
 * Makes a socket connect from the client's address, at a port that the kernel chooses when it connects. Returns 0, or a
 * negative errno value: -EPERM without CAP_NET_ADMIN.
 */
export function bindToClient(sockets: Sockets, fd: number, client: Uint8Array): number {
  const transparent = setTransparent(sockets, fd, domainOfBytes(client));
  if (transparent < 0) return transparent;
  const marked = sockets.setOption(fd, SOL_SOCKET, SO_MARK, clientSourceMark);
  if (marked < 0) return marked;
  // Otherwise a client's connections to all endpoints together could not be more than there are ports.
  const late = sockets.setOption(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  return late < 0 ? late : sockets.bind(fd, withoutPort(client));
}

/** Why connections cannot be made from clients' addresses; undefined when they can. */
export async function clientSourceObstacle(family: Family): Promise<string | undefined> {
  const sockets = await loadSockets();
  const domain = family === 'IPv4' ? AF_INET : AF_INET6;
  const fd = sockets.socket(domain, SOCK_STREAM);
  if (fd < 0) return `no socket: ${errnoName(-fd)}`;
  const result = setTransparent(sockets, fd, domain);
  sockets.close(fd);
  return result < 0 ? `no transparent sockets: ${errnoName(-result)}` : undefined;
}

function setTransparent(sockets: Sockets, fd: number, domain: number): number {
  return domain === AF_INET
    ? sockets.setOption(fd, IPPROTO_IP, IP_TRANSPARENT, 1)
    : sockets.setOption(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, 1);
}
