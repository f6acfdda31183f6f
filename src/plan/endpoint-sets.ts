import type { Endpoint } from '../model/endpoint.ts';
import type { TopologyMode } from './service-plan.ts';
import { isForNode, isForZone, type PlanContext } from './topology.ts';

type Endpoints = readonly Endpoint[];

const none: Endpoints = [];

/** Whether it may get traffic: it is ready, or it is draining, which is used when nothing is ready. */
export function isUsable(endpoint: Endpoint): boolean {
  return endpoint.ready || isDraining(endpoint);
}

/** Terminating, and still serving. */
export function isDraining(endpoint: Endpoint): boolean {
  return !endpoint.ready && endpoint.serving && endpoint.terminating;
}

/** Endpoints for traffic under policy Cluster: the ready ones that topology allows; if there are none, the draining. */
export function clusterEndpoints(endpoints: Endpoints, mode: TopologyMode, context: PlanContext): Endpoints {
  const ready = select(endpoints, (endpoint) => endpoint.ready && isInTopology(endpoint, mode, context));
  return ready.length > 0 ? ready : select(endpoints, isDraining);
}

/** Endpoints for traffic under policy Local: the ready ones on this node; if there are none, the draining. */
export function localEndpoints(endpoints: Endpoints): Endpoints {
  const ready = select(endpoints, ({ isLocal, ready }) => isLocal && ready);
  if (ready.length > 0) return ready;
  return select(endpoints, (endpoint) => endpoint.isLocal && isDraining(endpoint));
}

/** Every endpoint of either list, sorted by id. When one list holds the other, returns that very array. */
export function unionOf(a: Endpoints, b: Endpoints): Endpoints {
  if (isSubset(b, a)) return a;
  if (isSubset(a, b)) return b;
  return [...new Set([...a, ...b])].sort((x, y) => (x.id < y.id ? -1 : 1));
}

function isInTopology(endpoint: Endpoint, mode: TopologyMode, context: PlanContext): boolean {
  if (mode === 'PreferSameNode') return isForNode(endpoint, context);
  return mode !== 'PreferSameZone' || isForZone(endpoint, context);
}

/** Both lists were filtered from the same sorted list, so equal members are identical and in the same order. */
function isSubset(part: Endpoints, whole: Endpoints): boolean {
  let at = 0;
  for (const endpoint of part) {
    while (at < whole.length && whole[at] !== endpoint) at++;
    if (at === whole.length) return false;
  }
  return true;
}

/** Filters. Returns the given array when it keeps everything, so that most plans hold no list of their own. */
function select(endpoints: Endpoints, isWanted: (endpoint: Endpoint) => boolean): Endpoints {
  const kept = endpoints.filter(isWanted);
  if (kept.length === endpoints.length) return endpoints;
  return kept.length === 0 ? none : kept;
}
