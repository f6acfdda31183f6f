import type { TypeMeta } from '../inspect/api.ts';

/**
 * Where the server of the page follows packets: with `?name=SERVICE` it answers with a `Trace`, without it with a
 * `TraceAbility`.
 */
export const TRACE_PATH = '/trace';

/**
 * A request that follows packets must have this header, with any value. A link cannot have it, and a browser does not
 * let the script of another site send it: no answer of the server allows that.
 */
export const TRACE_HEADER = 'x-kube-proxy-trace';

export const TRACE_SECONDS = 10;
/** The connections that are followed at most. */
export const TRACE_PACKETS = 5;

/** Whether the server of the page can follow packets. */
export interface TraceAbility extends TypeMeta<'TraceAbility'> {
  /** Why it cannot; null when it can. */
  readonly obstacle: string | null;
}
