import { hash } from 'node:crypto';
import { type ServicePort, servicePortName } from '../../model/service-port.ts';
import type { EndpointList } from '../../plan/service-plan.ts';

/** Prefixes of our per-service chains in nat; no other program uses them. */
const servicePrefixes = ['KUBE-SVC-', 'KUBE-SVL-', 'KUBE-EXT-', 'KUBE-FW-', 'KUBE-SEP-'] as const;

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** The names of one service port in rules and chains. */
export interface ServiceNames {
  /** As in comments: `namespace/name:port`, or `namespace/name` for an unnamed port. */
  readonly name: string;
  /** `tcp`, `udp` or `sctp`. */
  readonly protocol: string;
  /** Chains: over the cluster's endpoints, over local ones, for external destinations, source ranges. */
  readonly svc: string;
  readonly svl: string;
  readonly ext: string;
  readonly fw: string;
}

export function serviceNames(port: ServicePort): ServiceNames {
  const name = servicePortName(port);
  const protocol = port.protocol.toLowerCase();
  const suffix = chainHash(name + protocol);
  return {
    name,
    protocol,
    svc: `KUBE-SVC-${suffix}`,
    svl: `KUBE-SVL-${suffix}`,
    ext: `KUBE-EXT-${suffix}`,
    fw: `KUBE-FW-${suffix}`,
  };
}

/** The chain that shares traffic out among those endpoints of a service port that a plan names. */
export function balancingChain({ svc, svl }: ServiceNames, endpoints: EndpointList): string {
  return endpoints === 'local' ? svl : svc;
}

/** The chain of one endpoint of a service port. */
export function endpointChain({ name, protocol }: ServiceNames, endpointId: string): string {
  return `KUBE-SEP-${chainHash(name + protocol + endpointId)}`;
}

/** Whether a chain of the nat table is one that this mode, here or upstream, made for a service port. */
export function isServiceChain(chain: string): boolean {
  return servicePrefixes.some((prefix) => chain.startsWith(prefix));
}

/** The first 16 base32 digits, that is 80 bits, of the SHA-256 of the text. */
function chainHash(text: string): string {
  // One character for each byte: a string costs a quarter of what a buffer does.
  const digest = hash('sha256', text, 'binary');
  const digits: number[] = [];
  let bits = 0;
  let left = 0;
  for (let at = 0; at < 10; at++) {
    bits = ((bits << 8) | digest.charCodeAt(at)) & 0xfff;
    for (left += 8; left >= 5; left -= 5) digits.push(base32.charCodeAt((bits >> (left - 5)) & 31));
  }
  return String.fromCharCode(...digits);
}
