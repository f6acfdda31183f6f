import type { Clock } from '../lib/clock.ts';
import type { TimeSlice } from '../lib/time-slice.ts';
import { type ApiError, apiErrorOf } from './api-error.ts';
import { type Fields, isFields, printValue } from './fields.ts';
import { StreamError } from './json-scanner.ts';
import { readList, watchFrames } from './json-stream.ts';
import type { RestClient, StreamRequest } from './rest-client.ts';
import { TimeLimit } from './time-limit.ts';

/** What to list and watch; the server filters by the selectors. */
export interface WatchTarget {
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** One page of a list, without its items. */
export interface ListPage {
  readonly version: string;
  /** Token for the next page; empty after the last. */
  readonly next: string;
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
  readonly idleMs: () => number;
  readonly signal: AbortSignal;
  /** Called when the server has accepted the watch. */
  readonly onOpen: () => void;
}

/** One event of a watch. */
export type WatchEvent =
  | { readonly type: 'upsert' | 'delete'; readonly object: Fields; readonly version: string }
  /** Everything up to `version` has been sent; `initialEventsEnd` closes the list that began a streaming watch. */
  | { readonly type: 'bookmark'; readonly version: string; readonly initialEventsEnd: boolean }
  | { readonly type: 'error'; readonly error: ApiError };

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
/** Until the answer to a streamed list begins: after it there is still the list in pages. */
const streamAnswerTimeoutMs = 30_000;
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
    onItem: (raw: unknown) => void,
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
        signal: timeLimit.signal,
      });
      return pageOf(await readList(body, timeSlice, onItem));
    } finally {
      timeLimit.lift();
    }
  }

  /** Yields changes until the server ends the watch. */
  async *watch(parameters: WatchParameters, timeSlice: TimeSlice): AsyncGenerator<WatchEvent> {
    const { version, seconds, idleMs, signal, onOpen } = parameters;
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
        timeoutMs: version === undefined ? streamAnswerTimeoutMs : answerTimeoutMs,
        unthrottled: true,
        signal: timeLimit.signal,
      });
      onOpen();
      for await (const frame of watchFrames(body, timeSlice)) yield watchEventOf(frame);
    } finally {
      timeLimit.lift();
    }
  }

  async #open(request: Omit<StreamRequest, 'method' | 'path'>): Promise<AsyncIterable<Uint8Array>> {
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

function pageOf(list: Readonly<Record<string, unknown>>): ListPage {
  const { resourceVersion: version, continue: next = '' } = isFields(list.metadata) ? list.metadata : {};
  if (typeof version !== 'string' || version === '') {
    throw new StreamError(`a list whose metadata.resourceVersion is ${printValue(version)}`);
  }
  if (typeof next !== 'string')
    throw new StreamError(`a list whose metadata.continue is ${printValue(next)}`);
  return { version, next };
}

/** Reads one frame of a watch stream. Throws `StreamError` for an unknown form. */
export function watchEventOf(frame: unknown): WatchEvent {
  const fields = isFields(frame) ? frame : {};
  const { type, object } = fields;
  if (!isFields(object)) throw new StreamError(`a watch event of type ${printValue(type)} without an object`);
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { type: 'upsert', object, version: versionOf(object) };
    case 'DELETED':
      return { type: 'delete', object, version: versionOf(object) };
    case 'BOOKMARK':
      return bookmarkOf(object);
    case 'ERROR':
      return { type: 'error', error: apiErrorOf(0, object) };
    default:
      throw new StreamError(`a watch event of the unknown type ${printValue(type)}`);
  }
}

function bookmarkOf(object: Fields): WatchEvent {
  const version = versionOf(object);
  if (version === '') throw new StreamError('a bookmark without a resourceVersion');
  return { type: 'bookmark', version, initialEventsEnd: endsInitialEvents(object) };
}

/** Empty when absent; the decoder checks the object. */
function versionOf(object: Fields): string {
  const version = metadataOf(object).resourceVersion;
  return typeof version === 'string' ? version : '';
}

function endsInitialEvents(object: Fields): boolean {
  const annotations = metadataOf(object).annotations;
  return isFields(annotations) && annotations['k8s.io/initial-events-end'] === 'true';
}

function metadataOf(object: Fields): Fields {
  return isFields(object.metadata) ? object.metadata : {};
}
