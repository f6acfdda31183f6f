import type { Clock } from '../lib/clock.ts';
import type { TimeSlice } from '../lib/time-slice.ts';
import { isFields, printValue } from './fields.ts';
import { StreamError } from './json-scanner.ts';
import { readList, watchFrames } from './json-stream.ts';
import type { RestClient } from './rest-client.ts';
import type { ServerPresence } from './server-presence.ts';
import { TimeLimit } from './time-limit.ts';
import { type WatchEvent, watchEventOf } from './watch-event.ts';

/** What to list and watch; the server does the filtering. */
export interface WatchTarget {
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** One page of a list: its items have been handed over, this is the rest. */
export interface ListPage {
  readonly version: string;
  /** Token for the next page; empty after the last. */
  readonly next: string;
}

export interface PageParameters {
  /** Items per page; 0 for the whole list. */
  readonly limit: number;
  /** Token of the page before; empty for the first. */
  readonly position: string;
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

export interface WatchParameters {
  /** Where to begin; undefined asks for everything there is first, then a bookmark that says so. */
  readonly version: string | undefined;
  /** When the server should end the watch. */
  readonly seconds: number;
  readonly idleMs: () => number;
  readonly signal: AbortSignal;
}

/** Time for an answer to begin: an overloaded server may hold a request in a queue for a minute. */
const answerTimeoutMs = 75_000;
const pageTimeoutMs = 300_000;
/** How long after its own time-out a watch may still be open. */
const watchGraceMs = 30_000;

export interface ListWatchOptions {
  readonly client: RestClient;
  readonly presence: ServerPresence;
  readonly target: WatchTarget;
  readonly clock: Clock;
}

/** The two questions to the API server about one kind of object. */
export class ListWatch {
  readonly #options: ListWatchOptions;

  constructor(options: ListWatchOptions) {
    this.#options = options;
  }

  /** Reads one page, handing over each item as it arrives. */
  async page(
    parameters: PageParameters,
    onItem: (raw: unknown) => void,
    timeSlice: TimeSlice,
  ): Promise<ListPage> {
    const { limit, position, idleMs, signal } = parameters;
    const query: Record<string, string> = {};
    if (limit > 0) query.limit = String(limit);
    if (position !== '') query.continue = position;
    const timeLimit = new TimeLimit(this.#options.clock, pageTimeoutMs, [signal]);
    try {
      const body = await this.#open(query, () => idleMs, false, timeLimit.signal);
      return pageOf(await readList(body, timeSlice, onItem));
    } finally {
      timeLimit.lift();
    }
  }

  /** Follows changes until the server ends the watch. */
  async *watch(parameters: WatchParameters, timeSlice: TimeSlice): AsyncGenerator<WatchEvent> {
    const { version, seconds, idleMs, signal } = parameters;
    const timeLimit = new TimeLimit(this.#options.clock, seconds * 1000 + watchGraceMs, [signal]);
    const start =
      version === undefined
        ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
        : { resourceVersion: version };
    const query = { watch: 'true', allowWatchBookmarks: 'true', timeoutSeconds: String(seconds), ...start };
    try {
      const body = await this.#open(query, idleMs, true, timeLimit.signal);
      for await (const frame of watchFrames(body, timeSlice)) yield watchEventOf(frame);
    } finally {
      timeLimit.lift();
    }
  }

  async #open(
    query: Record<string, string>,
    idleMs: () => number,
    unthrottled: boolean,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    const { client, presence, target } = this.#options;
    const { path, labelSelector, fieldSelector } = target;
    if (labelSelector !== undefined) query.labelSelector = labelSelector;
    if (fieldSelector !== undefined) query.fieldSelector = fieldSelector;
    const body = await client.stream({
      method: 'GET',
      path,
      query,
      idleMs,
      unthrottled,
      signal,
      timeoutMs: answerTimeoutMs,
    });
    presence.answered();
    return body;
  }
}

function pageOf(list: Readonly<Record<string, unknown>>): ListPage {
  const { resourceVersion: version, continue: next = '' } = isFields(list.metadata) ? list.metadata : {};
  if (typeof version !== 'string' || version === '') {
    throw new StreamError(`a list whose metadata.resourceVersion is ${printValue(version)}`);
  }
  if (typeof next !== 'string')
    throw new StreamError(`a list whose metadata.continue is ${printValue(next)}`);
  return { version, next };
}
