import { canonicalIP, cidrContains, joinHostPort, parseCIDR, splitIPPort } from '../model/ip.ts';
import type { ServicePort } from '../model/service-port.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { QuestionError } from './question.ts';
import { isAddress, type Selector, selectorParameters } from './selection.ts';
import {
  type FlowEvent,
  type FlowItem,
  flowStates,
  type TrafficFigures,
  type TrafficGrouping,
  type TrafficItem,
} from './traffic-api.ts';

export const trafficParameters = [...selectorParameters, 'by'] as const;
export const flowParameters = [
  ...selectorParameters,
  'client',
  'endpoint',
  'pod',
  'protocol',
  'state',
  'watch',
] as const;

/** Figures since some moment. */
export interface TrafficAnswer {
  readonly items: readonly TrafficItem[];
  /** Milliseconds since the Unix epoch. */
  readonly since: number;
  readonly lostEvents: number;
  readonly leftOut: number;
  /** What cannot be counted here, and why; null when everything is. */
  readonly warning: string | null;
}

export interface TrafficWish {
  readonly by: TrafficGrouping;
  readonly isWanted: (plan: PlannedPort) => boolean;
  /** Also those service ports, or their endpoints, that have had no traffic. */
  readonly withIdle: boolean;
  /** Open connections, packets and bytes may be this old; openings and failures are those of now. */
  readonly maxAgeMs?: number;
}

/** The figures of a service port in one family. */
export interface MeteredPort {
  readonly port: ServicePort;
  readonly figures: TrafficFigures;
}

/**
 * What a meter counts: `connections` that reach an endpoint, with those that are open or fail there; their packets and
 * `bytes`; and connections that the proxy refuses.
 */
export type MeteredKind = 'connections' | 'bytes' | 'refusals';

/** Counts the traffic of service ports all the time, as cheaply as possible. */
export interface TrafficMeter {
  /** Service ports that have had traffic since the meter was opened. Totals never go back. */
  read(): Promise<readonly MeteredPort[]>;
}

export type FlowFilter = (flow: FlowItem, plan: PlannedPort) => boolean;

/** Where figures and flows come from: the connection table of the kernel, or the process that forwards. */
export interface TrafficSource {
  /** Counts from the first question on, as long as somebody keeps asking. */
  figures(wish: TrafficWish): Promise<TrafficAnswer>;
  /** Counts these from now on, and maybe others, also while nobody asks. Rejects when the kernel does not let us. */
  openMeter(kinds: ReadonlySet<MeteredKind>): Promise<TrafficMeter>;
  /** Passes on the flows that there are now, some at a time; goes on when the promise resolves. */
  flows(isWanted: FlowFilter, write: (flows: readonly FlowItem[]) => Promise<void>): Promise<void>;
  /** Calls back with what happens to flows from now on, and when that fails; the function returned ends it. */
  watch(
    isWanted: FlowFilter,
    onEvent: (event: Omit<FlowEvent, 'apiVersion' | 'kind'>) => void,
    onEnd: () => void,
  ): Promise<() => void>;
}

const groupings: readonly TrafficGrouping[] = ['service', 'endpoint', 'client'];

export interface TrafficQuestion extends Selector {
  readonly by: TrafficGrouping;
}

export function readGrouping(text: string | null): TrafficGrouping {
  const wanted = text === null || text === '' ? 'service' : text;
  const by = groupings.find((known) => known === wanted);
  if (!by) throw new QuestionError(`by ${JSON.stringify(text)} is none of ${groupings.join(', ')}`);
  return by;
}

export interface FlowQuestion extends Selector {
  /** Filters besides those of the selector; empty when not asked for. */
  readonly client: string;
  readonly endpoint: string;
  /** `name` or `namespace/name`. */
  readonly pod: string;
  readonly protocol: string;
  readonly state: string;
}

export function readFlowQuestion(read: (name: string) => string | null): FlowQuestion {
  const text = (name: string) => read(name) ?? '';
  return {
    name: text('name'),
    namespace: text('namespace'),
    client: text('client'),
    endpoint: text('endpoint'),
    pod: text('pod'),
    protocol: text('protocol').toUpperCase(),
    state: text('state').toUpperCase(),
  };
}

/** The filter of a question. `isSelected` answers for its name, unless that is an address. */
export function flowFilter(question: FlowQuestion, isSelected: (plan: PlannedPort) => boolean): FlowFilter {
  const { name = '', namespace = '', pod, protocol, state } = question;
  if (protocol !== '' && !['TCP', 'UDP', 'SCTP'].includes(protocol)) {
    throw new QuestionError(`protocol ${JSON.stringify(protocol)} is none of TCP, UDP, SCTP`);
  }
  if (state !== '' && !flowStates.some((known) => known === state)) {
    throw new QuestionError(`state ${JSON.stringify(state)} is none of ${flowStates.join(', ')}`);
  }
  const isFromClient = addressFilter('client', question.client);
  const isToEndpoint = addressFilter('endpoint', question.endpoint);
  const isAnywhere = isAddress(name) ? addressFilter('name', name.replace(/\/[a-z]+$/i, '')) : undefined;
  return (flow, plan) =>
    (protocol === '' || flow.protocol === protocol) &&
    (state === '' || flow.state === state) &&
    (namespace === '' || plan.port.namespace === namespace) &&
    (isFromClient?.(flow.client) ?? true) &&
    (isToEndpoint?.(flow.endpoint) ?? true) &&
    (pod === '' || flow.pod === pod || (flow.pod?.endsWith(`/${pod}`) ?? false)) &&
    (isAnywhere
      ? isAnywhere(flow.client) || isAnywhere(flow.frontend) || isAnywhere(flow.endpoint)
      : isSelected(plan));
}

/** Whether `ip:port` is at this address, at this address and port, or in this range; undefined for no condition. */
export function addressFilter(field: string, text: string): ((place: string | null) => boolean) | undefined {
  if (text === '') return undefined;
  const ip = canonicalIP(text.replace(/^\[(.*)\]$/, '$1'));
  if (ip !== undefined) {
    const start = joinHostPort(ip, '');
    return (place) => place?.startsWith(start) ?? false;
  }
  const range = parseCIDR(text);
  if (range) {
    return (place) => {
      const found = place === null ? undefined : splitIPPort(place);
      return found !== undefined && cidrContains(range, found.ip);
    };
  }
  const split = /:\d+$/.test(text) ? splitIPPort(text) : undefined;
  if (!split || split.port > 65_535) {
    throw new QuestionError(`${field} ${JSON.stringify(text)} is no address, address with port, or range`);
  }
  const address = canonicalIP(text.slice(0, text.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1')) ?? '';
  return (place) => place === joinHostPort(address, split.port);
}
