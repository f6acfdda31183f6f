import { frontendClaim } from '../../plan/claim.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { addressBytes, type Bytes, portBytes, protocolBytes } from './bytes.ts';

/** A destination that a service port answers for. */
export interface Frontend {
  /** (address, protocol, port), or (protocol, port) for a node port: a key of the maps that hold it. */
  readonly key: Bytes;
  readonly kind: 'cluster-ip' | 'external' | 'nodeport';
  /** Only sources in the service's ranges may reach it. */
  readonly guarded: boolean;
}

/** Every destination that a plan claims, each once; cluster IP first. */
export function frontendsOf(plan: ServicePlan): Frontend[] {
  const { port } = plan;
  const suffix = protocolBytes(port.protocol) + portBytes(port.port);
  const isGuarded = port.sourceRanges.length > 0;
  const frontends = new Map<Bytes, Frontend>();
  const add = (ip: string, kind: Frontend['kind'], guarded: boolean): void => {
    const key = addressBytes(ip) + suffix;
    const known = frontends.get(key);
    frontends.set(key, known ? { ...known, guarded: known.guarded || guarded } : { key, kind, guarded });
  };
  if (port.clusterIP !== '') add(port.clusterIP, 'cluster-ip', false);
  for (const ip of plan.externalIPs) add(ip, 'external', false);
  for (const ip of port.loadBalancerVIPs) add(ip, 'external', isGuarded);
  if (port.nodePort !== 0) {
    const key = protocolBytes(port.protocol) + portBytes(port.nodePort);
    frontends.set(key, { key, kind: 'nodeport', guarded: false });
  }
  return [...frontends.values()];
}

/** The plan's claim to a frontend: the first of all claims has it. */
export function claimOf(plan: ServicePlan, frontend: Frontend): string {
  return frontendClaim(plan.port.key, frontend.kind === 'cluster-ip');
}

/** Cluster address of a plan, as its set holds it. */
export function clusterAddressOf(plan: ServicePlan): Bytes[] {
  return plan.port.clusterIP === '' ? [] : [addressBytes(plan.port.clusterIP)];
}

/** What a packet looks like that one of the plan's endpoints on this node sent to itself through the service. */
export function hairpinsOf(plan: ServicePlan): Bytes[] {
  const protocol = protocolBytes(plan.port.protocol);
  return plan.all
    .filter((endpoint) => endpoint.isLocal)
    .map(({ ip, port }) => {
      const address = addressBytes(ip);
      return address + address + protocol + portBytes(port);
    });
}
