import type { Packet } from '../backends/inspection.ts';
import type { ServicePort } from '../model/service-port.ts';
import { claimedFrontends, type Frontend, isLost } from '../plan/frontend.ts';
import type { ServicePlan } from '../plan/service-plan.ts';

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
    const isAskedFor = hasAddress(plan, destination);
    if (port.clusterIP === destination) found.clusterAddress ??= port;
    if (isAskedFor) found.anyAddress ??= port;
    if (port.healthCheckNodePort === packet.port) found.healthCheck ??= port;
    if (port.protocol !== packet.protocol) continue;
    const isNodePort = port.nodePort === packet.port && port.nodePort !== 0;
    if (!isNodePort && !(isAskedFor && port.port === packet.port)) continue;
    for (const frontend of claimedFrontends(plan)) {
      if (frontend.port !== packet.port) continue;
      if (frontend.kind === 'node port') nodePorts.push(frontend);
      else if (frontend.address === destination) addresses.push(frontend);
    }
  }
  return { addresses, nodePorts, ...found };
}

/** `cluster IP 10.96.0.1:80/TCP`, `node port 30080/TCP at 192.0.2.5`. */
export function frontendText({ kind, name, port, protocol }: Frontend, { destination }: Packet): string {
  return kind === 'node port' ? `node port ${port}/${protocol} at ${destination}` : `${kind} ${name}`;
}

function hasAddress({ port, externalIPs }: ServicePlan, address: string): boolean {
  return (
    port.clusterIP === address || externalIPs.includes(address) || port.loadBalancerVIPs.includes(address)
  );
}

/** Those who ask for one destination, the one that has it first. */
export function ownerFirst(frontends: readonly Frontend[]): Frontend[] {
  return [...frontends.filter((one) => !isLost(one)), ...frontends.filter(isLost)];
}
