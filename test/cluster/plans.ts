import { Ownership } from '../../src/plan/ownership.ts';
import { type PlanContext, PlannedPort, planServicePort } from '../../src/plan/plan.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { type EndpointParts, endpoint, type ServicePortParts, servicePort } from './objects.ts';

export const planContext: PlanContext = { nodeName: 'n1', zone: 'zone-a', allowExternalIPs: true };

/** The plan of a service port with the given endpoints on the node n1 in zone-a. */
export function planOf(parts: ServicePortParts, endpoints: readonly EndpointParts[] = []): PlannedPort {
  const sorted = endpoints.map(endpoint).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return planServicePort(servicePort(parts), sorted, planContext);
}

/** A plan that throws when a mode asks what happens to packets for the cluster IP. */
export class FaultyPlan extends PlannedPort {
  static of(parts: ServicePortParts): FaultyPlan {
    return new FaultyPlan(servicePort(parts), [endpoint({ ip: '10.244.0.66' })], planContext);
  }

  override get internal(): never {
    throw new Error('no decision can be made');
  }
}

/** Plans by key, with one owner for each destination that several of them claim, as the planner decides it. */
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
