import { type Choice, choiceFor } from '../../../forwarder/balancer.ts';
import { endpointName, type ListenerState } from '../../../forwarder/forwarder.ts';
import { joinHostPort } from '../../../model/ip.ts';
import type { EndpointList, ServicePlan } from '../../../plan/service-plan.ts';
import { distributionOf, listenerName } from '../../forwarded-fate.ts';
import type { Difference } from '../../inspection.ts';
import type { ProxySocket } from '../proxy-sockets.ts';

/** A wanted listener. */
export interface WantedListener {
  readonly plan: ServicePlan;
  readonly list: EndpointList;
  /** Identifies the listener within its service port. */
  readonly name: string;
  /** Where it may listen, in words. */
  readonly place: string;
  /** Undefined when it is to be opened. */
  readonly socket: ProxySocket | undefined;
}

/** A socket that is open for a service port. */
export interface OpenSocket {
  readonly service: string;
  readonly socket: ProxySocket;
}

/** Listeners that a sync would open, change, or close. */
export function listenerDifferences(
  wanted: readonly WantedListener[],
  open: readonly OpenSocket[],
  listeners: ReadonlyMap<string, ListenerState>,
  choice: Choice,
): Difference[] {
  const kept = new Set(wanted.map(({ socket }) => socket));
  const closing = open.filter(({ socket }) => !kept.has(socket));
  return [
    ...wanted.flatMap((each) => differenceOf(each, listeners, choice)),
    ...closing.map(({ service, socket: { id, ip, port } }) => {
      const state = listeners.get(id);
      const found = state ? listenerName(state) : joinHostPort(ip, port);
      return { service, kind: 'listener', object: id, wanted: undefined, found };
    }),
  ];
}

function differenceOf(
  { plan, list, name, place, socket }: WantedListener,
  listeners: ReadonlyMap<string, ListenerState>,
  choice: Choice,
): Difference[] {
  const service = plan.port.key;
  const object = `${service} ${name}`;
  const state = socket && listeners.get(socket.id);
  if (!state) return [{ service, kind: 'listener', object, wanted: place, found: undefined }];
  const endpoints = plan[list].map(endpointName);
  const wanted = told({
    endpoints,
    affinitySeconds: plan.port.affinitySeconds,
    choice: choiceFor(plan.balance, choice),
  });
  const found = told(state);
  return wanted === found ? [] : [{ service, kind: 'endpoints', object, wanted, found }];
}

function told(state: Pick<ListenerState, 'endpoints' | 'affinitySeconds' | 'choice'>): string {
  return `${state.endpoints.toSorted().join(' ') || 'none'} (${distributionOf(state)})`;
}
