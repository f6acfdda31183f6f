import type { Answers, EndpointPlace, EndpointSpec, Fate, ServiceSpec, Source, Target } from './story.ts';

export type Place = Exclude<EndpointPlace, 'nobody'>;

/** The endpoints that serve a service under policy Cluster, and those that serve it under policy Local. */
export interface ServingEndpoints {
  readonly cluster: readonly Place[];
  readonly local: readonly Place[];
}

/** The decision table: which endpoints serve a packet, and which source address they see. */
export function verdict(
  from: Source,
  to: Target,
  spec: ServiceSpec,
  { cluster, local }: ServingEndpoints,
): Answers | Fate {
  if (cluster.length === 0 && local.length === 0) return 'REJECT';
  const isLocalPod = from === 'pod';
  if (to === 'clusterIP') {
    return served(spec.internalPolicy === 'Local' ? local : cluster, isLocalPod ? 'OWN' : 'MASQ');
  }
  if (spec.externalPolicy !== 'Local') return served(cluster, 'MASQ');
  if (isLocalPod) return served(cluster, 'OWN');
  return from === 'node' ? served(cluster, 'MASQ') : served(local, 'OWN');
}

function served(by: readonly Place[], source: 'OWN' | 'MASQ'): Answers | Fate {
  return by.length === 0 ? 'DROP' : Object.fromEntries(by.map((place) => [place, source]));
}

const placesHere: readonly EndpointPlace[] = ['A', 'C', 'node'];

/** Whether an endpoint is on the node of the program. */
export function isHere({ at }: EndpointSpec): boolean {
  return placesHere.includes(at);
}

/** The ready endpoints; if there are none, the draining ones. */
export function serving(endpoints: readonly EndpointSpec[]): readonly EndpointSpec[] {
  const ready = endpoints.filter(isReady);
  return ready.length > 0 ? ready : endpoints.filter(({ state }) => state === 'draining');
}

/** The endpoints that serve a service on a node in this zone. */
export function servingEndpoints(endpoints: readonly EndpointSpec[], zone: string): ServingEndpoints {
  const ready = endpoints.filter(isReady);
  const near = ready.filter(({ zoneHints }) => zoneHints?.includes(zone));
  const followsHints = ready.every(({ zoneHints }) => zoneHints !== undefined) && near.length > 0;
  return {
    cluster: placesOf(followsHints ? near : serving(endpoints)),
    local: placesOf(serving(endpoints.filter(isHere))),
  };
}

function isReady({ state = 'ready' }: EndpointSpec): boolean {
  return state === 'ready' || state === 'silent';
}

function placesOf(endpoints: readonly EndpointSpec[]): Place[] {
  return endpoints.flatMap(({ at }) => (at === 'nobody' ? [] : [at]));
}
