import type { Packet } from '../backends/inspection.ts';
import type { DestinationMatches } from '../backends/packet-rules.ts';
import { claimedFrontends, type Frontend, isLost } from '../plan/frontend.ts';
import type { ServicePlan } from '../plan/service-plan.ts';

/**
 * Looks at every plan, which takes milliseconds with 50,000 of them. An index would cost more than the few questions
 * save, and could be out of date.
 */
export function matchesOf(packet: Packet, plans: ReadonlyMap<string, ServicePlan>): DestinationMatches {
  const { destination } = packet;
  const addresses: Frontend[] = [];
  const nodePorts: Frontend[] = [];
  type Found = 'clusterAddress' | 'anyAddress' | 'healthCheck';
  const found: { -readonly [Name in Found]: DestinationMatches[Name] } = {
    clusterAddress: undefined,
    anyAddress: undefined,
    healthCheck: undefined,
  };
  for (const plan of plans.values()) {
    const { port } = plan;
    const claimsAddress = hasAddress(plan, destination);
    if (port.clusterIP === destination) found.clusterAddress ??= port;
    if (claimsAddress) found.anyAddress ??= port;
    if (port.healthCheckNodePort === packet.port) found.healthCheck ??= port;
    if (port.protocol !== packet.protocol) continue;
    const isNodePort = port.nodePort === packet.port && port.nodePort !== 0;
    if (!isNodePort && !(claimsAddress && port.port === packet.port)) continue;
    for (const frontend of claimedFrontends(plan)) {
      if (frontend.port !== packet.port) continue;
      if (frontend.kind === 'node port') nodePorts.push(frontend);
      else if (frontend.address === destination) addresses.push(frontend);
    }
  }
  return { addresses, nodePorts, ...found };
}

function hasAddress({ port, externalIPs }: ServicePlan, address: string): boolean {
  return (
    port.clusterIP === address || externalIPs.includes(address) || port.loadBalancerVIPs.includes(address)
  );
}

/** The frontends that claim one destination, the owner first. */
export function ownerFirst(frontends: readonly Frontend[]): Frontend[] {
  return [...frontends.filter((one) => !isLost(one)), ...frontends.filter(isLost)];
}
