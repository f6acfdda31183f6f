import { systemClock } from '../lib/clock.ts';
import { zoneOf } from '../model/node-eligibility.ts';
import type { ResourceName, Resources } from '../model/objects.ts';
import type { Logger } from '../obs/log.ts';
import { PlannedFamily } from '../proxier/planned-family.ts';
import { Router } from '../proxier/router.ts';
import { SetAside } from '../proxier/set-aside.ts';
import type { ObjectHandler } from '../sources/source.ts';
import type { Completed } from './complete.ts';
import type { KnownNode } from './known-node.ts';
import type { NodeSetup } from './node-setup.ts';
import { withPatience } from './patience.ts';

/** What there would be to write, had a proxy been started. */
export interface LoadedPlans {
  /** IPv4 before IPv6. */
  readonly families: readonly PlannedFamily[];
  readonly setAside: SetAside;
}

const resources = ['services', 'endpointSlices', 'serviceCIDRs'] as const;
/** An API server that cannot be reached is asked for ever; who looks at a terminal wants to know sooner. */
const patienceMs = 30_000;

/** Waits for the first lists of everything and plans it. Throws when they do not come. */
export async function loadPlans(
  { cluster, node, nodeName }: KnownNode,
  { gates }: Completed,
  setup: NodeSetup,
  logger: Logger,
): Promise<LoadedPlans> {
  const setAside = new SetAside({ announce: () => {}, logger });
  const families = [...setup.families].sort().map(
    (family) =>
      new PlannedFamily({
        family,
        nodeName,
        onProblem: (problem) => setAside.report(family, problem),
        clock: systemClock,
      }),
  );
  const lists = new FirstLists(new Router(families, setAside, logger));
  cluster.source.start(resources, lists);
  await lists.arrive();
  const allowExternalIPs = gates.enabled('AllowServiceExternalIPs');
  for (const family of families) {
    await family.plan({ nodeName, zone: zoneOf(node.node) ?? '', allowExternalIPs });
  }
  return { families, setAside };
}

/** Passes objects on and notes which lists are complete. */
class FirstLists implements ObjectHandler {
  readonly #next: ObjectHandler;
  readonly #missing = new Set<ResourceName>(resources);
  readonly #complete = Promise.withResolvers<void>();

  constructor(next: ObjectHandler) {
    this.#next = next;
  }

  upsert<R extends ResourceName>(
    resource: R,
    object: Resources[R],
    previous: Resources[R] | undefined,
  ): void {
    this.#next.upsert(resource, object, previous);
  }

  remove<R extends ResourceName>(resource: R, object: Resources[R]): void {
    this.#next.remove(resource, object);
  }

  synced(resource: ResourceName): void {
    this.#missing.delete(resource);
    if (this.#missing.size === 0) this.#complete.resolve();
  }

  arrive(): Promise<void> {
    const missing = () => `the list of ${[...this.#missing].join(', ')}`;
    return withPatience(this.#complete.promise, patienceMs, systemClock, missing);
  }
}
