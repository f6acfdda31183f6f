import type {
  DiffReport,
  EndpointList,
  ExplanationReport,
  JournalReport,
  ServiceList,
  StatusReport,
} from '../inspect/api.ts';
import type { JournalQuestion } from '../inspect/journal-report.ts';
import type { Selector } from '../inspect/selection.ts';
import type {
  AffinityReport,
  FlowEvent,
  FlowList,
  TrafficGrouping,
  TrafficReport,
} from '../inspect/traffic-api.ts';

/** A packet to explain, as the API takes it. */
export interface AskedPacket {
  readonly source: string;
  readonly destination: string;
  readonly port: string;
  readonly protocol: string;
  readonly interface?: string;
}

/** An answer of a running proxy, whatever its status is. */
export interface PageAnswer {
  readonly status: number;
  readonly body: AsyncIterable<string>;
}

/** Which traffic to report, as the API takes it. */
export interface TrafficQuestion extends Selector {
  readonly by: TrafficGrouping;
}

/** Which flows to report, as the API takes it. */
export interface FlowQuestion extends Selector {
  readonly client?: string;
  readonly endpoint?: string;
  readonly pod?: string;
  readonly protocol?: string;
  readonly state?: string;
}

/** Which clients that are bound to an endpoint to report, as the API takes it. */
export interface AffinityQuestion extends Selector {
  readonly client?: string;
  readonly endpoint?: string;
  readonly limit?: string;
}

/** Events as they happen, those that came together as one list. Ends, or throws, when the proxy ends it. */
export type FlowEvents = AsyncIterable<readonly FlowEvent[]>;

/** The pages of a running proxy. */
export interface Pages {
  /** Rejects only when there is no answer. */
  ask(path: string): Promise<PageAnswer>;
  /** The text of the page at a path, in pieces. Rejects when the answer is not 200. */
  page(path: string): Promise<AsyncIterable<string>>;
  /** The node that -N names; undefined when the proxy is at an address, for example on this machine. */
  readonly onNode?: string;
}

/** Answers of a running proxy, or of plans that were made without one. Rejects with an error that can be shown to the user. */
export interface ReportSource {
  status(): Promise<StatusReport>;
  services(selector?: Selector): Promise<ServiceList>;
  endpoints(selector?: Selector): Promise<EndpointList>;
  explain(packet: AskedPacket): Promise<ExplanationReport>;
  diff(): Promise<DiffReport>;
  traffic(question: TrafficQuestion): Promise<TrafficReport>;
  affinity(question?: AffinityQuestion): Promise<AffinityReport>;
  flows(question?: FlowQuestion): Promise<FlowList>;
  /** Resolves when the proxy has begun to watch. */
  watchFlows(question?: FlowQuestion): Promise<FlowEvents>;
  journal(question?: JournalQuestion): Promise<JournalReport>;
  /** Absent without a running proxy. */
  readonly pages?: Pages;
  close(): Promise<void>;
}

/** Throws when there is no running proxy. */
export function pagesOf({ pages }: ReportSource): Pages {
  if (!pages) throw new Error('this needs a running kube-proxy');
  return pages;
}
