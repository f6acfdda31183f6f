import type { Packet } from '../backends/inspection.ts';
import { joinHostPort } from '../model/ip.ts';
import type { ServicePort } from '../model/service-port.ts';
import { frontendClaim } from '../plan/claim.ts';
import type { ServicePlan } from '../plan/service-plan.ts';

export type FrontendKind = 'cluster IP' | 'external IP' | 'load balancer IP' | 'node port';

/** A destination that a service port answers for. */
export interface Frontend {
  readonly plan: ServicePlan;
  readonly kind: FrontendKind;
}

/** Everything that service ports have to do with a packet's destination, in the order of plans. */
export interface Matches {
  /** By address, protocol and port. */
  readonly addresses: readonly Frontend[];
  /** By protocol and port, whatever the address. */
  readonly nodePorts: readonly Frontend[];
  /** A service port that has the address as its cluster IP, at any port. */
  readonly clusterAddress: ServicePort | undefined;
  /** One that has the address as any of its addresses, at any port. */
  readonly anyAddress: ServicePort | undefined;
  /** One that has the port as its health check node port. */
  readonly healthCheck: ServicePort | undefined;
}

const none: readonly never[] = [];

/**
 * Looks through all plans: with 50,000 of them that takes some milliseconds, less than an index would have to save
 * in questions, and it is never out of date.
 */
export function matchesOf(packet: Packet, plans: ReadonlyMap<string, ServicePlan>): Matches {
  const { destination } = packet;
  const addresses: Frontend[] = [];
  const nodePorts: Frontend[] = [];
  const found: { -readonly [K in 'clusterAddress' | 'anyAddress' | 'healthCheck']: Matches[K] } = {
    clusterAddress: undefined,
    anyAddress: undefined,
    healthCheck: undefined,
  };
  for (const plan of plans.values()) {
    const { port } = plan;
    const kinds = hasAddress(plan, destination) ? addressKinds(plan, destination) : none;
    if (port.clusterIP === destination) found.clusterAddress ??= port;
    if (kinds.length > 0) found.anyAddress ??= port;
    if (port.healthCheckNodePort === packet.port) found.healthCheck ??= port;
    if (port.protocol !== packet.protocol) continue;
    if (port.port === packet.port) addresses.push(...kinds.map((kind) => ({ plan, kind })));
    if (port.nodePort === packet.port && port.nodePort !== 0) nodePorts.push({ plan, kind: 'node port' });
  }
  return { addresses, nodePorts, ...found };
}

/** `cluster IP 10.96.0.1:80/TCP`, `node port 30080/TCP at 192.0.2.5`. */
export function frontendText({ kind, plan }: Frontend, { destination, port, protocol }: Packet): string {
  if (kind === 'node port') return `node port ${plan.port.nodePort}/${protocol} at ${destination}`;
  return `${kind} ${joinHostPort(destination, port)}/${protocol}`;
}

function hasAddress({ port, externalIPs }: ServicePlan, address: string): boolean {
  return (
    port.clusterIP === address || externalIPs.includes(address) || port.loadBalancerVIPs.includes(address)
  );
}

function addressKinds({ port, externalIPs }: ServicePlan, address: string): FrontendKind[] {
  const kinds: FrontendKind[] = [];
  if (port.clusterIP === address) kinds.push('cluster IP');
  if (externalIPs.includes(address)) kinds.push('external IP');
  if (port.loadBalancerVIPs.includes(address)) kinds.push('load balancer IP');
  return kinds;
}

/**
 * Those who claim one destination, the one that gets it first: cluster IPs before others where the mode has it so,
 * then the smaller service port key.
 */
export function inClaimOrder(frontends: readonly Frontend[], clusterIPsFirst: boolean): Frontend[] {
  const claim = ({ kind, plan }: Frontend): string =>
    frontendClaim(plan.port.key, !clusterIPsFirst || kind === 'cluster IP');
  return frontends.toSorted((a, b) => (claim(a) === claim(b) ? 0 : claim(a) < claim(b) ? -1 : 1));
}
