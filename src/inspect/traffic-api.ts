import type { Family } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';
import type { FamilyLook, ListReport, TypeMeta } from './api.ts';

/** The JSON of the inspection API that is about traffic. As in api.ts, times are RFC 3339 and durations seconds. */

/** Connections that did not get through, by what became of them. */
export interface FailedConnections {
  /** The proxy refused them: the Service has no endpoint. */
  readonly rejected: number;
  /** The proxy dropped them: policy Local, and no endpoint on this node. */
  readonly dropped: number;
  /** The proxy dropped them: the client is not in loadBalancerSourceRanges. */
  readonly filtered: number;
  /** They reached an endpoint, which refused or reset them before any answer. */
  readonly reset: number;
  /** They were sent to an endpoint and ended without an answer. */
  readonly unanswered: number;
}

/** What was counted since the beginning of the report. A flow of datagrams is a connection, too. */
export interface TrafficFigures {
  readonly opened: number;
  readonly ended: number;
  /** Open now, also those from before. */
  readonly open: number;
  /** Null while the kernel does not count them. */
  readonly packetsToEndpoint: number | null;
  readonly packetsToClient: number | null;
  readonly bytesToEndpoint: number | null;
  readonly bytesToClient: number | null;
  readonly failed: FailedConnections;
}

/** What the items of a traffic report stand for. */
export type TrafficGrouping = 'service' | 'endpoint' | 'client';

/** One service port, or one endpoint or client of a service port. */
export interface TrafficItem extends TrafficFigures {
  readonly service: string;
  readonly family: Family;
  /** `ip:port`; null unless grouped by endpoint, and for connections that never got one. */
  readonly endpoint: string | null;
  /** The pod of the endpoint, `namespace/name`, and its zone; null when it is not known. */
  readonly pod: string | null;
  readonly zone: string | null;
  /** The share of new connections that the plan gives it, 0 to 1; null unless grouped by endpoint. */
  readonly expectedShare: number | null;
  /** An address; null unless grouped by client. */
  readonly client: string | null;
}

export interface TrafficReport extends ListReport<'Traffic', TrafficItem> {
  readonly mode: ProxyMode;
  readonly time: string;
  /** Figures count from then on. The same as in the last report as long as somebody keeps asking. */
  readonly since: string;
  readonly by: TrafficGrouping;
  /** Openings and ends that the kernel could not report, because they came too fast. */
  readonly lostEvents: number;
  /** Items that are not in the answer, because there were too many. */
  readonly leftOut: number;
  readonly families: readonly TrafficLook[];
}

/** Whether the traffic of one family is counted. */
export interface TrafficLook extends FamilyLook {
  /** What of it is not counted, and why; null when everything is. */
  readonly warning: string | null;
}

/** A TCP state as the kernel's connection table has it, or what is known of a flow of datagrams. */
export const flowStates = [
  'SYN_SENT',
  'SYN_RECV',
  'ESTABLISHED',
  'FIN_WAIT',
  'CLOSE_WAIT',
  'LAST_ACK',
  'TIME_WAIT',
  'CLOSE',
  'UNREPLIED',
  'REPLIED',
  'UNKNOWN',
] as const;
export type FlowState = (typeof flowStates)[number];

/** One connection through a Service. */
export interface FlowItem {
  readonly family: Family;
  readonly protocol: Protocol;
  /** `ip:port`. */
  readonly client: string;
  /** The destination that the client used, `ip:port`. */
  readonly frontend: string;
  readonly service: string;
  /** `ip:port`; null when the connection got none. */
  readonly endpoint: string | null;
  /** The pod of the endpoint, `namespace/name`; null when it is not known. */
  readonly pod: string | null;
  readonly state: FlowState;
  /** True while packets of the flow skip the rules; else absent. */
  readonly onFastPath?: boolean;
  /** Null when the kernel does not say. */
  readonly ageSeconds: number | null;
  readonly packetsToEndpoint: number | null;
  readonly packetsToClient: number | null;
  readonly bytesToEndpoint: number | null;
  readonly bytesToClient: number | null;
}

export interface FlowList extends ListReport<'FlowList', FlowItem> {
  readonly mode: ProxyMode;
  readonly time: string;
  readonly families: readonly FamilyLook[];
}

/** Something that happened to a connection. With `watch=true`, the answer is one of these per line. */
export interface FlowEvent extends TypeMeta<'FlowEvent'> {
  readonly time: string;
  /** `Lost`: the kernel could not report `count` openings and ends; `flow` is null then. */
  readonly event: 'Opened' | 'Ended' | 'Rejected' | 'Dropped' | 'Filtered' | 'Lost';
  readonly flow: FlowItem | null;
  /** Why it was rejected, dropped or filtered, as `explain` says it; null for other events. */
  readonly reason: string | null;
  /** 1, or the number of lost events. */
  readonly count: number;
}

/** A client that affinity binds to an endpoint of a service port. */
export interface AffinityItem {
  readonly service: string;
  readonly family: Family;
  /** An address. */
  readonly client: string;
  /** `ip:port`. */
  readonly endpoint: string;
  /** The pod of the endpoint, `namespace/name`; null when it is not known. */
  readonly pod: string | null;
  /** Until the binding ends, if the client opens no further connection. */
  readonly secondsLeft: number;
  /** The frontend that the binding holds for, `ip:port`; null when it holds for all of the service port. */
  readonly frontend: string | null;
}

/** `items` are those with the most time left, in this order: the clients that called last. */
export interface AffinityReport extends ListReport<'AffinityList', AffinityItem> {
  readonly mode: ProxyMode;
  readonly time: string;
  /** Bindings that are not in the answer, because there are more than the limit. */
  readonly leftOut: number;
  readonly families: readonly FamilyLook[];
}
