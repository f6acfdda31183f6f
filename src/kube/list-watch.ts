import type { Clock } from '../lib/clock.ts';
import type { TimeSlice } from '../lib/time-slice.ts';
import type { ListPage, ReceivedObject, WatchEvent } from './encoding.ts';
import { encodingOf } from './encodings.ts';
import { readAnswer } from './read-answer.ts';
import type { AnswerBody, RestClient, StreamRequest } from './rest-client.ts';
import { TimeLimit } from './time-limit.ts';

/** What to list and watch; the server filters by the selectors. */
export interface WatchTarget {
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface PageParameters {
  /** Items per page; 0 for the whole list. */
  readonly limit: number;
  /** Token from the previous page; empty for the first. */
  readonly position: string;
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

export interface WatchParameters {
  /** Where to start; undefined asks for all existing objects first, and a bookmark after them. */
  readonly version: string | undefined;
  /** After how long the server should end the watch. */
  readonly seconds: number;
  /** Until the answer begins; otherwise as long as any request waits. */
  readonly answerMs?: number;
  readonly idleMs: () => number;
  readonly signal: AbortSignal;
  /** Called when the server has accepted the watch. */
  readonly onOpen: () => void;
}

/**
 * Tells waiting reflectors that the server answers again: after an outage the first successful request ends the
 * back-off of the others.
 */
export class ServerPresence {
  #next = new AbortController();

  /** Aborts at the server's next answer to any request. */
  get next(): AbortSignal {
    return this.#next.signal;
  }

  answered(): void {
    const waiting = this.#next;
    this.#next = new AbortController();
    waiting.abort();
  }
}

/** Until an answer begins: an overloaded server may queue a request for a minute. */
const answerTimeoutMs = 75_000;
const pageTimeoutMs = 300_000;
/** How long a watch may stay open after its own time-out. */
const watchGraceMs = 30_000;

export interface ListWatchOptions {
  readonly client: RestClient;
  readonly presence: ServerPresence;
  readonly target: WatchTarget;
  readonly clock: Clock;
}

/** The list and watch requests for one resource. */
export class ListWatch {
  readonly #options: ListWatchOptions;

  constructor(options: ListWatchOptions) {
    this.#options = options;
  }

  /** Reads one page and calls `onItem` for each item as it arrives. */
  async page(
    parameters: PageParameters,
    onItem: (object: ReceivedObject) => void,
    timeSlice: TimeSlice,
  ): Promise<ListPage> {
    const { limit, position, idleMs, signal } = parameters;
    const query: Record<string, string> = {};
    if (limit > 0) query.limit = String(limit);
    if (position !== '') query.continue = position;
    const timeLimit = new TimeLimit(this.#options.clock, pageTimeoutMs, [signal]);
    try {
      const body = await this.#open({
        query,
        idleMs: () => idleMs,
        timeoutMs: answerTimeoutMs,
        // A list counts once against the QPS: with 5 a second, the pages of a large cluster would take many seconds.
        unthrottled: position !== '',
        signal: timeLimit.signal,
      });
      return await readAnswer(body, encodingOf(body.contentType).list(), timeSlice, (item) => {
        onItem(item);
        return undefined;
      });
    } finally {
      timeLimit.lift();
    }
  }

  /** Calls `onEvent` for each event until the server ends the watch; waits for a promise that it returns. */
  async watch(
    parameters: WatchParameters,
    onEvent: (event: WatchEvent) => Promise<void> | undefined,
    timeSlice: TimeSlice,
  ): Promise<void> {
    const { version, seconds, answerMs = answerTimeoutMs, idleMs, signal, onOpen } = parameters;
    const timeLimit = new TimeLimit(this.#options.clock, seconds * 1000 + watchGraceMs, [signal]);
    const start =
      version === undefined
        ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
        : { resourceVersion: version };
    const query = { watch: 'true', allowWatchBookmarks: 'true', timeoutSeconds: String(seconds), ...start };
    try {
      const body = await this.#open({
        query,
        idleMs,
        timeoutMs: answerMs,
        unthrottled: true,
        // Single events are small. A streamed list is worth compressing.
        ...(version !== undefined && { headers: { 'accept-encoding': 'identity' } }),
        signal: timeLimit.signal,
      });
      onOpen();
      await readAnswer(body, encodingOf(body.contentType).watch(), timeSlice, onEvent);
    } finally {
      timeLimit.lift();
    }
  }

  async #open(request: Omit<StreamRequest, 'method' | 'path'>): Promise<AnswerBody> {
    const { client, presence, target } = this.#options;
    const { path, labelSelector, fieldSelector } = target;
    const query: Record<string, string> = { ...request.query };
    if (labelSelector !== undefined) query.labelSelector = labelSelector;
    if (fieldSelector !== undefined) query.fieldSelector = fieldSelector;
    const body = await client.stream({ ...request, method: 'GET', path, query });
    presence.answered();
    return body;
  }
}
