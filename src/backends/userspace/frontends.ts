import { type Family, joinHostPort } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import type { Decision, EndpointList, ServicePlan } from '../../plan/service-plan.ts';

/** A destination that a service port answers for, and what becomes of new connections to it. */
export interface Frontend {
  readonly kind: 'cluster-ip' | 'external' | 'nodeport';
  /** Empty for a node port. */
  readonly ip: string;
  readonly port: number;
  readonly protocol: Protocol;
  /** Where connections go; undefined when they are refused. */
  readonly list: EndpointList | undefined;
  readonly refusal: 'drop' | 'reject' | undefined;
  /** Where connections from this node and its pods go, when that is elsewhere. */
  readonly near: EndpointList | undefined;
  /** Only sources in the service's ranges may reach it. */
  readonly guarded: boolean;
}

/** Two service ports cannot have frontends of the same name. */
export function frontendName({ kind, ip, port, protocol }: Frontend): string {
  return `${kind === 'nodeport' ? `:${port}` : joinHostPort(ip, port)}/${protocol}`;
}

/** Every destination that a plan claims, each once; cluster IP first. */
export function frontendsOf(plan: ServicePlan): Frontend[] {
  const { port } = plan;
  const { protocol } = port;
  const frontends = new Map<string, Frontend>();
  const add = (frontend: Frontend): void => {
    const name = frontendName(frontend);
    const known = frontends.get(name);
    frontends.set(name, known ? { ...known, guarded: known.guarded || frontend.guarded } : frontend);
  };
  const at = { port: port.port, protocol, guarded: false };
  if (port.clusterIP !== '') add({ ...at, kind: 'cluster-ip', ip: port.clusterIP, ...fateOf(plan.internal) });
  const external = { kind: 'external', ...fateOf(plan.external, plan.nearEndpoints) } as const;
  for (const ip of plan.externalIPs) add({ ...at, ip, ...external });
  const guarded = port.sourceRanges.length > 0;
  for (const ip of port.loadBalancerVIPs) add({ ...at, ip, ...external, guarded });
  if (port.nodePort !== 0) {
    add({ ...at, ...external, kind: 'nodeport', ip: '', port: port.nodePort });
  }
  return [...frontends.values()];
}

/** Lists that any of the frontends sends connections to. */
export function listsOf(frontends: readonly Frontend[]): Set<EndpointList> {
  return new Set(frontends.flatMap(({ list, near }) => [list ?? [], near ?? []].flat()));
}

function fateOf(decision: Decision, near?: EndpointList): Pick<Frontend, 'list' | 'refusal' | 'near'> {
  return decision.action === 'forward'
    ? { list: decision.endpoints, refusal: undefined, near }
    : { list: undefined, refusal: decision.action, near };
}

/** The address that stands for all of a family. */
export function anyAddress(family: Family): string {
  return family === 'IPv4' ? '0.0.0.0' : '::';
}
