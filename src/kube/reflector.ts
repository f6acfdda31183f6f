import { Backoff, type BackoffOptions } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import type { ResourceName } from '../model/objects.ts';
import type { WatchStatus } from '../model/source-status.ts';
import { ApiError, ConnectError, IdleError, TransportError } from './api-error.ts';
import type { ReceivedObject, WatchEvent } from './encoding.ts';
import { ListMethod } from './list-method.ts';
import { ListWatch, type ServerPresence, type WatchTarget } from './list-watch.ts';
import { compareVersions } from './object-cache.ts';
import { ObjectIntake, type ObjectIntakeOptions } from './object-intake.ts';
import type { RestClient } from './rest-client.ts';
import { StreamError } from './stream-error.ts';
import { shortWatchMs, WatchState } from './watch-state.ts';

export interface ReflectorTuning {
  readonly backoff: BackoffOptions;
  readonly pageSize: number;
  /** The server ends a watch after a random time in this range, which spreads the load of many clients. */
  readonly watchSeconds: readonly [min: number, max: number];
  /** Without data for this long a watch is dead: bookmarks come about every minute. */
  readonly idleMs: number;
  readonly firstList: ListPatience;
  readonly laterList: ListPatience;
  /**
   * A streamed list that is not complete after this long has failed. A server that does not know streamed lists never
   * ends one, and in a busy cluster its events keep coming.
   */
  readonly listMs: number;
  /** For how long lists come in pages after streaming one has failed. */
  readonly streamingPause: BackoffOptions;
}

/**
 * How long to wait for data of a list. A server that is busy, as after its restart, when every node lists, is still at
 * work on a list that is late. To give that up and ask again doubles its load. The first list has less time:
 * until then the node has nothing, and afterwards its rules stay as they are.
 */
interface ListPatience {
  /** Until the answer to a streamed list begins. */
  readonly answerMs: number;
  /** Without data for this long, the list has failed. */
  readonly idleMs: number;
}

const defaultTuning: ReflectorTuning = {
  backoff: { initialMs: 800, maxMs: 30_000, jitter: 1 },
  pageSize: 500,
  watchSeconds: [300, 600],
  idleMs: 150_000,
  firstList: { answerMs: 30_000, idleMs: 30_000 },
  laterList: { answerMs: 75_000, idleMs: 150_000 },
  listMs: 300_000,
  streamingPause: { initialMs: 60_000, maxMs: 3_600_000, jitter: 1 },
};

export interface ReflectorOptions<R extends ResourceName> extends ObjectIntakeOptions<R> {
  readonly client: RestClient;
  /** Shared by all reflectors of one server. */
  readonly presence: ServerPresence;
  readonly target: WatchTarget;
  /** Whether to ask for streamed lists; otherwise all lists come in pages. */
  readonly streamsLists: boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly tuning?: Partial<ReflectorTuning>;
}

/** So many streamed lists in a row may fail for a reason that may pass, before one comes in pages. */
const passingFailures = { first: 1, later: 3 };

/** After this many watches in a row that were refused or could not be read, the reflector lists again. */
const maxRefusals = 3;

/**
 * Delivers the objects of one resource and their changes: a list, then watches from where the list ended. While the
 * server is away nothing is delivered; when it returns, the changes of that time are.
 */
export class Reflector<R extends ResourceName> {
  readonly #options: ReflectorOptions<R>;
  readonly #tuning: ReflectorTuning;
  readonly #server: ListWatch;
  readonly #intake: ObjectIntake<R>;
  readonly #state: WatchState;
  readonly #backoff: Backoff;
  /** Between lists. Objects do not reset it: a server may send some before each version expires. */
  readonly #listBackoff: Backoff;
  readonly #stop = new AbortController();
  /** Where the next watch starts; undefined while a list is needed. */
  #version: string | undefined;
  readonly #listMethod: ListMethod;
  #hasListed = false;
  /** Whether the current attempt began with a streamed list. */
  #isStreaming = false;
  /** Whether the server has accepted the current watch. */
  #isOpen = false;
  /** Whether the current watch has delivered an event. */
  #hasEvents = false;
  #refusals = 0;
  /** From then on a wait may be cut short again, and an expired version may lead to a list without a wait. */
  #wakeableAt = 0;
  #freshListAt = 0;

  constructor(options: ReflectorOptions<R>) {
    this.#options = options;
    this.#tuning = { ...defaultTuning, ...options.tuning };
    this.#server = new ListWatch(options);
    this.#intake = new ObjectIntake(options);
    this.#state = new WatchState(options.resource, options.clock);
    this.#backoff = new Backoff(this.#tuning.backoff, options.random);
    this.#listBackoff = new Backoff(this.#tuning.backoff, options.random);
    const pauses = new Backoff(this.#tuning.streamingPause, options.random);
    this.#listMethod = new ListMethod(options.streamsLists, pauses, options.clock);
  }

  /** Runs until `stop`. Rejects when the sink throws or on a defect, never on a fault of the server. */
  async run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stop.signal.aborted) {
      const startedAt = clock.monotonic();
      const failure = await this.#attempt();
      this.#state.ended(failure?.error);
      if (this.#stop.signal.aborted) return;
      // A connection that lasted this long was healthy.
      const lasted = clock.monotonic() - startedAt;
      if (lasted >= this.#tuning.backoff.maxMs) {
        this.#backoff.reset();
        this.#listBackoff.reset();
      }
      if (failure !== undefined) await this.#recover(failure.error);
      else if (!this.#isStreaming && lasted < shortWatchMs) {
        await sleep(clock, shortWatchMs - lasted, this.#stop.signal);
      }
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Whether the server sends changes, or since when it does not, and why. */
  status(): WatchStatus {
    return this.#state.status();
  }

  /** Lists if needed, then watches; returns when the watch ends, with the error if there was one. */
  async #attempt(): Promise<{ readonly error: unknown } | undefined> {
    this.#isOpen = false;
    this.#isStreaming = this.#version === undefined && this.#listMethod.streams;
    try {
      if (this.#version === undefined && !this.#isStreaming) await this.#list();
      await this.#watch();
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  /** Decides how to go on after a failure, and waits for the back-off. Throws errors that are not the server's. */
  async #recover(error: unknown): Promise<void> {
    if (!isFaultOfServer(error)) throw error;
    const { logger, resource } = this.#options;
    if (this.#isStreaming && this.#version === undefined && this.#fallBackToPages(error)) return;
    if (this.#isFreshListDue(error)) {
      this.#version = undefined;
      logger.info('The API server no longer has the changes since the last list; listing again', {
        resource,
        reason: String(error),
      });
      return;
    }
    // A server that was restored from a backup sends no events after a version that it has not reached.
    if (error instanceof IdleError && !this.#hasEvents) this.#version = undefined;
    if (isRefusal(error)) this.#refusals++;
    const mustList = isExpiry(error) || this.#refusals >= maxRefusals;
    if (mustList) this.#version = undefined;
    const asked = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
    // All nodes may have been asked to wait equally long.
    const stretched = asked * (1 + 0.5 * this.#options.random());
    const delay = Math.max(stretched, this.#backoff.next(), mustList ? this.#listBackoff.next() : 0);
    this.#state.failed(error);
    logger.error(error, 'Failed to watch', { resource, retryInMs: Math.round(delay) });
    await this.#pause(delay, asked === 0);
  }

  /**
   * Waits `ms`, or until the server answers another reflector unless it asked for this wait. An early wake-up is not
   * repeated within `maxMs`: otherwise reflectors would wake each other without pause on a server that drops them all.
   */
  async #pause(ms: number, mayWake: boolean): Promise<void> {
    const { clock, presence } = this.#options;
    const { next } = presence;
    const stop = this.#stop.signal;
    const wakeable = mayWake && clock.monotonic() >= this.#wakeableAt;
    await sleep(clock, ms, wakeable ? AbortSignal.any([stop, next]) : stop);
    if (wakeable && next.aborted) this.#wakeableAt = clock.monotonic() + this.#tuning.backoff.maxMs;
  }

  /** Whether to list at once: a restarted server has no history, and the reflector has waited for it already. */
  #isFreshListDue(error: unknown): boolean {
    if (!isExpiry(error) || this.#version === undefined) return false;
    const now = this.#options.clock.monotonic();
    if (now < this.#freshListAt) return false;
    this.#freshListAt = now + this.#tuning.backoff.maxMs;
    return true;
  }

  /**
   * Lets the next list come in pages, after a streamed one failed. Returns whether to make it at once; otherwise the
   * error says nothing about streamed lists, and the usual wait follows.
   */
  #fallBackToPages(error: unknown): boolean {
    const { logger, resource } = this.#options;
    if (error instanceof ConnectError) return false;
    if (this.#mayPass(error)) {
      this.#listMethod.streamUnanswered(this.#hasListed ? passingFailures.later : passingFailures.first);
      return false;
    }
    const pauseMs = this.#listMethod.streamFailed();
    logger.info('Failed to stream a list; listing in pages', {
      resource,
      reason: String(error),
      streamAgainInMs: Math.round(pauseMs),
    });
    return true;
  }

  /**
   * Whether the failure of a streamed list may be one of a busy or restarting server rather than of streaming. The first
   * list does not wait to find that out.
   */
  #mayPass(error: unknown): boolean {
    if (this.#hasListed && error instanceof ApiError && error.isBehind) return true;
    const mayPass = error instanceof ApiError ? error.temporary : error instanceof TransportError;
    return mayPass && (this.#hasListed || !this.#isOpen);
  }

  async #list(): Promise<void> {
    const timeSlice = new TimeSlice(this.#options.clock);
    this.#listMethod.pagesTried();
    try {
      this.#startFrom(await this.#listPages(this.#tuning.pageSize, timeSlice));
    } catch (error) {
      if (!isExpiry(error)) throw error;
      // The list took longer than the server keeps its history; a list without pages cannot expire.
      this.#startFrom(await this.#listPages(0, timeSlice));
    }
  }

  async #listPages(limit: number, timeSlice: TimeSlice): Promise<string> {
    const take = (object: ReceivedObject) => this.#intake.upsert(object);
    const signal = this.#stop.signal;
    const { idleMs } = this.#patience;
    this.#intake.beginListing();
    let position = '';
    for (;;) {
      const page = await this.#server.page({ limit, position, idleMs, signal }, take, timeSlice);
      this.#state.received();
      if (page.next === '') {
        await this.#intake.endListing(page.version, timeSlice);
        return page.version;
      }
      if (page.next === position) throw new StreamError('a list whose continue token does not change');
      position = page.next;
    }
  }

  /** Runs one watch from the known version, or from a streamed list when there is none. */
  async #watch(): Promise<void> {
    const { clock, random } = this.#options;
    const { watchSeconds, idleMs, listMs } = this.#tuning;
    const patience = this.#patience;
    const [min, max] = watchSeconds;
    if (this.#isStreaming) this.#intake.beginListing();
    const parameters = {
      version: this.#version,
      seconds: Math.round(min + (max - min) * random()),
      ...(this.#version === undefined && { answerMs: patience.answerMs }),
      idleMs: () => (this.#version === undefined ? patience.idleMs : idleMs),
      signal: this.#stop.signal,
      onOpen: () => {
        this.#isOpen = true;
        if (this.#version !== undefined) this.#state.opened();
      },
    };
    const startedAt = clock.monotonic();
    const timeSlice = new TimeSlice(clock);
    this.#hasEvents = false;
    let hasObjects = false;
    const take = (event: WatchEvent) => {
      const applied = this.#apply(event, timeSlice);
      this.#hasEvents = true;
      hasObjects ||= event.type !== 'bookmark';
      const isListing = this.#version === undefined && applied === undefined;
      if (isListing && clock.monotonic() - startedAt > listMs) {
        throw new TransportError(`the list was not complete after ${listMs / 1000} s`);
      }
      return applied;
    };
    await this.#server.watch(parameters, take, timeSlice);
    if (this.#version === undefined) throw new TransportError('the watch ended before its list was complete');
    if (!this.#isStreaming && !hasObjects && clock.monotonic() - startedAt < shortWatchMs) {
      throw new TransportError('the server closed the watch at once');
    }
  }

  /** Returns a promise only for the end of a streamed list, which removes objects in time slices. */
  #apply(event: WatchEvent, timeSlice: TimeSlice): Promise<void> | undefined {
    if (event.type === 'error') throw event.error;
    this.#state.received();
    if (event.type === 'upsert') this.#intake.upsert(event.object);
    if (event.type === 'delete') this.#intake.remove(event.object);
    if (this.#version !== undefined) {
      // An object proves that the server is healthy again; a list or a bookmark alone does not.
      if (event.type !== 'bookmark') this.#backoff.reset();
      this.#advanceTo(event.type === 'bookmark' ? event.version : event.object.version, this.#version);
    } else if (event.type === 'bookmark' && event.initialEventsEnd) {
      return this.#endStreamedList(event.version, timeSlice);
    }
    return undefined;
  }

  async #endStreamedList(version: string, timeSlice: TimeSlice): Promise<void> {
    await this.#intake.endListing(version, timeSlice);
    this.#listMethod.streamCompleted();
    this.#startFrom(version);
    this.#state.opened();
    this.#state.received();
  }

  get #patience(): ListPatience {
    return this.#hasListed ? this.#tuning.laterList : this.#tuning.firstList;
  }

  #startFrom(version: string): void {
    this.#state.listed();
    this.#hasListed = true;
    this.#version = version;
    this.#refusals = 0;
  }

  #advanceTo(version: string, known: string): void {
    // Late and repeated events do not move the start of the next watch.
    if (version === '' || (compareVersions(version, known) ?? 1) <= 0) return;
    this.#version = version;
    this.#refusals = 0;
  }
}

/**
 * Whether the same watch would probably fail again. Temporary errors do not count: lists from every node would burden a
 * busy or starting server.
 */
function isRefusal(error: unknown): boolean {
  return error instanceof StreamError || (error instanceof ApiError && !error.temporary);
}

function isExpiry(error: unknown): boolean {
  return error instanceof ApiError && error.expired;
}

function isFaultOfServer(error: unknown): boolean {
  return error instanceof ApiError || error instanceof TransportError || error instanceof StreamError;
}
