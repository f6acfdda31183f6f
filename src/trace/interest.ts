import type { ServiceReport } from '../inspect/api.ts';
import { type CIDR, type Family, parseCIDR, parseIP } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';

/** Packets that are followed. What is absent may be anything. */
export interface Interest {
  readonly family: Family;
  readonly protocol: Protocol;
  /** `node`: packets that the node itself sends. */
  readonly source?: CIDR | 'node';
  readonly sourcePort?: number;
  /** `node`: any address of the node. */
  readonly destination: CIDR | 'node';
  readonly port?: number;
}

/** The source of packets as a user gives it; undefined when it is neither an address, a CIDR nor `node`. */
export function sourceOf(text: string): CIDR | 'node' | undefined {
  return text === 'node' ? 'node' : (parseCIDR(text) ?? hostCIDR(text));
}

/** The prefix that has only this address; undefined when it is no address. */
export function hostCIDR(address: string): CIDR | undefined {
  const ip = parseIP(address);
  return ip && { ...ip, prefix: ip.bytes.length * 8 };
}

/** Packets to every address and port of these service ports, from anywhere or from one source. */
export function interestsIn(items: readonly ServiceReport[], source?: CIDR | 'node'): Interest[] {
  return items
    .filter(({ family }) => source === undefined || source === 'node' || source.family === family)
    .flatMap((item) => frontendsOf(item).map((frontend) => ({ ...frontend, ...(source && { source }) })));
}

function frontendsOf({
  family,
  protocol,
  clusterIP,
  externalIPs,
  loadBalancerIPs,
  port,
  nodePort,
}: ServiceReport): Interest[] {
  const addresses = [clusterIP, ...externalIPs, ...loadBalancerIPs];
  const cidrs = [...new Set(addresses)].flatMap((address) => hostCIDR(address) ?? []);
  const interests: Interest[] = cidrs.map((destination) => ({ family, protocol, destination, port }));
  return nodePort === 0
    ? interests
    : [...interests, { family, protocol, destination: 'node', port: nodePort }];
}

/** Packets between addresses; without a port, to any port. */
export function interestsBetween(
  source: CIDR | 'node',
  destination: CIDR,
  port: number | undefined,
  protocols: readonly Protocol[],
): Interest[] {
  if (source !== 'node' && source.family !== destination.family) return [];
  const { family } = destination;
  return protocols.map((protocol) => ({
    family,
    protocol,
    source,
    destination,
    ...(port !== undefined && { port }),
  }));
}
