import { silentRestMetrics } from '../kube/rest-metrics.ts';
import { systemClock } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import { zoneOf } from '../model/node-eligibility.ts';
import type { ResourceName } from '../model/objects.ts';
import { PlannedFamily } from '../proxier/planned-family.ts';
import { Router } from '../proxier/router.ts';
import { SetAside } from '../proxier/set-aside.ts';
import {
  type Connected,
  connectAndLoadNode,
  describeNode,
  type Start,
  type StartInput,
  serviceDefaults,
} from './start.ts';

/** A start that ends with plans instead of a server: everything a server would write. */
export interface PlannedStart extends Start {
  /** IPv4 before IPv6. */
  readonly planned: readonly PlannedFamily[];
  readonly setAside: SetAside;
}

const resources = ['services', 'endpointSlices', 'serviceCIDRs'] as const;

/**
 * Time limits in ms. A client retries for ever when the API server does not answer, but here a person waits at a
 * terminal.
 */
export interface PlanLimits {
  readonly connectMs: number;
  readonly listMs: number;
}

/** The first limit leaves time for the Node to be created. */
const defaultLimits: PlanLimits = { connectMs: 60_000, listMs: 30_000 };

/** Chooses the families to plan for, once the node is known. */
export type FamilyChoice = (connected: Connected) => ReadonlySet<Family> | Promise<ReadonlySet<Family>>;

/** Connects, loads everything once and plans it. Throws when it does not arrive. The caller stops `cluster.source`. */
export async function planOnce(
  input: StartInput,
  supported: FamilyChoice,
  limits: PlanLimits = defaultLimits,
): Promise<PlannedStart> {
  const connected = await connectWithin(limits.connectMs, input);
  try {
    return await loadPlans(describeNode(connected, await supported(connected)), limits.listMs);
  } catch (error) {
    await connected.cluster.source.stop();
    throw error;
  }
}

/** Stops connecting when the time is over: a client that retries would keep the process alive. */
async function connectWithin(ms: number, input: StartInput): Promise<Connected> {
  const stop = new AbortController();
  const connecting = connectAndLoadNode(input, silentRestMetrics, stop.signal);
  try {
    return await within(ms, connecting, () => 'an answer of the API server');
  } catch (error) {
    stop.abort();
    await connecting.catch(() => {});
    throw error;
  }
}

async function loadPlans(start: Start, listMs: number): Promise<PlannedStart> {
  const { completed, cluster, nodeManager, nodeName, logger } = start;
  const setAside = new SetAside({ announce: () => {}, logger });
  const planned = start.families.toSorted().map(
    (family) =>
      new PlannedFamily({
        family,
        nodeName,
        onProblem: (problem) => setAside.report(family, problem),
        clock: systemClock,
        defaults: serviceDefaults(start),
      }),
  );
  const router = new Router(planned, setAside, logger);
  const missing = new Set<ResourceName>(resources);
  const complete = Promise.withResolvers<void>();
  cluster.source.start(resources, {
    upsert: (resource, object, previous) => router.upsert(resource, object, previous),
    remove: (resource, object) => router.remove(resource, object),
    synced: (resource) => {
      missing.delete(resource);
      if (missing.size === 0) complete.resolve();
    },
  });
  await within(listMs, complete.promise, () => `the list of ${[...missing].join(', ')}`);
  const context = {
    nodeName,
    zone: zoneOf(nodeManager.node) ?? '',
    allowExternalIPs: completed.gates.enabled('AllowServiceExternalIPs'),
  };
  for (const family of planned) {
    await family.plan(context);
    setAside.refused(family.family, [...family.shortfalls()]);
  }
  return { ...start, planned, setAside };
}

/** The result of the promise; throws an error that names what did not arrive in time. */
async function within<T>(ms: number, promise: Promise<T>, missing: () => string): Promise<T> {
  const expired = Promise.withResolvers<never>();
  const timer = systemClock.setTimeout(
    () => expired.reject(new Error(`${missing()} did not come within ${ms / 1000} s`)),
    ms,
  );
  try {
    return await Promise.race([promise, expired.promise]);
  } finally {
    timer.cancel();
  }
}
