import type { Endpoint } from '../../src/model/endpoint.ts';
import { familyOf, joinHostPort } from '../../src/model/ip.ts';
import { type ServicePort, servicePortKey } from '../../src/model/service-port.ts';
import { Ownership } from '../../src/plan/ownership.ts';
import { type PlanContext, PlannedPort, planServicePort } from '../../src/plan/plan.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';

/** The parts of a service port that a test cares about; the family follows from the cluster IP. */
export type ServicePortParts = Partial<Omit<ServicePort, 'key' | 'family'>> & { readonly clusterIP: string };

export interface EndpointParts {
  readonly ip: string;
  readonly port?: number;
  /** On this node. */
  readonly local?: boolean;
  readonly state?: 'ready' | 'draining' | 'gone';
  readonly zoneHints?: readonly string[];
}

export const planContext: PlanContext = { nodeName: 'n1', zone: 'zone-a', allowExternalIPs: true };

/** A service port called default/web on TCP port 80, unless told otherwise. */
export function servicePort(parts: ServicePortParts): ServicePort {
  const { namespace = 'default', name = 'web', portName = '', protocol = 'TCP' } = parts;
  return {
    namespace,
    name,
    uid: '',
    createdAt: 0,
    portName,
    protocol,
    key: servicePortKey(namespace, name, portName, protocol),
    family: familyOf(parts.clusterIP) ?? 'IPv4',
    port: 80,
    nodePort: 0,
    affinitySeconds: 0,
    externalIPs: [],
    loadBalancerVIPs: [],
    sourceRanges: [],
    externalPolicyLocal: false,
    internalPolicyLocal: false,
    healthCheckNodePort: 0,
    ...parts,
  };
}

export function endpoint(parts: EndpointParts): Endpoint {
  const { ip, port = 8080, local = false, state = 'ready', zoneHints } = parts;
  return {
    id: joinHostPort(ip, port),
    ip,
    port,
    isLocal: local,
    ready: state === 'ready',
    serving: state !== 'gone',
    terminating: state !== 'ready',
    ...(zoneHints ? { zoneHints } : {}),
  };
}

/** The plan of a service port with the given endpoints, as the node n1 in zone-a makes it. */
export function planOf(parts: ServicePortParts, endpoints: readonly EndpointParts[] = []): PlannedPort {
  const sorted = endpoints.map(endpoint).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return planServicePort(servicePort(parts), sorted, planContext);
}

/** Plans by key, with every destination that several of them ask for given to one, as the planner does. */
export function plansByKey(...plans: readonly ServicePlan[]): Map<string, PlannedPort> {
  const byKey = new Map<string, PlannedPort>();
  for (const plan of plans) if (plan instanceof PlannedPort) byKey.set(plan.port.key, plan);
  const ownership = new Ownership();
  for (const plan of byKey.values()) ownership.claim(plan);
  const lost = [...byKey].map(([key, plan]) => [key, ownership.lostBy(plan, byKey)] as const);
  for (const [key, names] of lost) {
    const plan = byKey.get(key);
    if (plan && plan.lost !== names) byKey.set(key, plan.losing(names));
  }
  return byKey;
}
