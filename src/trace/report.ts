import type { TypeMeta } from '../inspect/api.ts';
import type { Family } from '../model/ip.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';

/** The answer of a trace, as JSON. Texts that come from rules of other programs have no control characters. */
export interface TraceReport extends TypeMeta<'Trace'> {
  /** Null when kube-proxy could not be asked. */
  readonly mode: ProxyMode | null;
  /** When the trace began, and how long it took. */
  readonly time: string;
  readonly seconds: number;
  /** What was followed: a Service, or `SRC → DST`. */
  readonly subject: string;
  /** At most this many connections are followed. */
  readonly limit: number;
  /** The kernel could not report all steps, because they came too fast: ways may have gaps. */
  readonly isIncomplete: boolean;
  /** What a trace cannot show on this node, in sentences. */
  readonly notShown: readonly string[];
  readonly connections: readonly TracedConnection[];
}

/**
 * What became of the first packet of a connection. `incomplete`: the endpoint answered, but the handshake was never
 * completed. `delivered`: nothing is known of an answer. `lost`: it disappeared, and not by a rule of nf_tables.
 */
export type Outcome =
  | 'answered'
  | 'refused'
  | 'incomplete'
  | 'unanswered'
  | 'delivered'
  | 'dropped'
  | 'rejected'
  | 'lost';

/** The way of the first packet of one connection. Addresses are `ip:port`. */
export interface TracedConnection {
  readonly family: Family;
  /** `TCP`, or the number of another protocol. */
  readonly protocol: string;
  readonly source: string;
  readonly destination: string;
  /** The service port that has the destination; null when there is none, or kube-proxy could not be asked. */
  readonly service: string | null;
  /** Where it was sent instead of its destination; null when that stayed as it was. */
  readonly endpoint: string | null;
  /** The source that the endpoint sees, where it is another one. */
  readonly masqueradedAs: string | null;
  /** The interfaces by which it came, null for a packet of the node itself, and left, null when it did not. */
  readonly entered: string | null;
  readonly left: string | null;
  readonly outcome: Outcome;
  /** What stopped it; null when that was no rule of nf_tables. */
  readonly culprit: Culprit | null;
  /** What happened and who did it, without the addresses. */
  readonly verdict: string;
  /** The verdict, and the addresses on the way. */
  readonly headline: string;
  /** Why, as far as it is known, in sentences. */
  readonly reasons: readonly string[];
  /** The chains that it passed, hook by hook. */
  readonly passed: readonly { readonly hook: string; readonly chains: readonly string[] }[];
  /** Every rule that matched and every policy. */
  readonly steps: readonly string[];
}

/** A rule or policy that dropped or rejected a packet. */
export interface Culprit {
  /** `inet firewall`. */
  readonly table: string;
  readonly chain: string;
  readonly hook: string;
  /** Null for the policy of the chain. */
  readonly handle: number | null;
  readonly comment: string | null;
  /** It belongs to kube-proxy. */
  readonly ours: boolean;
}
