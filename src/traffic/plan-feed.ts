import type { Family } from '../model/ip.ts';
import type { Placements } from '../model/placement.ts';
import type { ServicePort } from '../model/service-port.ts';
import type { PlannedPort } from '../plan/plan.ts';

/** The plans of one family, and changes of them. */
export interface PlanFeed {
  readonly family: Family;
  readonly plans: ReadonlyMap<string, PlannedPort>;
  /** Where the endpoints of a service port run; `known` when that earlier answer still holds. */
  placements(port: ServicePort, known?: Placements): Placements;
  /** Calls back with the keys of plans that changed; the function returned ends that. */
  followPlans(listener: (keys: Iterable<string>) => void): () => void;
}
