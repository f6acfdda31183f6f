/** What the connections of a flood do. */
export type Behaviour =
  /** Send many requests at once, read the answers, and begin again. */
  | 'pipelined'
  /** Send many requests at once and never read an answer. */
  | 'unread'
  /** Send a request head, one byte a second. */
  | 'slow'
  /** Send half a request head. */
  | 'half'
  /** Send nothing. */
  | 'silent';

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

export interface Flood {
  readonly name: string;
  readonly behaviour: Behaviour;
  /** Connections to each target. One that the server closes is opened again after five seconds. */
  readonly connections: number;
  /** Requests that are sent at once. */
  readonly depth: number;
  readonly targets: readonly Target[];
}
