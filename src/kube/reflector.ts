import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import type { ResourceName } from '../model/objects.ts';
import { ApiError, IdleError, TransportError } from './api-error.ts';
import { Backoff, type BackoffOptions, defaultBackoff } from './backoff.ts';
import { StreamError } from './json-scanner.ts';
import type { ServerPresence, WatchEvent } from './list-watch.ts';
import { ListWatch, type WatchTarget } from './list-watch.ts';
import { compareVersions } from './object-cache.ts';
import { ObjectIntake, type ObjectIntakeOptions } from './object-intake.ts';
import type { RestClient } from './rest-client.ts';

export interface ReflectorTuning {
  readonly backoff: BackoffOptions;
  readonly pageSize: number;
  /** A watch asks the server to end it after a random time in this range, so that load spreads out again. */
  readonly watchSeconds: readonly [min: number, max: number];
  /** Bookmarks come about every minute; silence for longer than this means that nobody is there. */
  readonly idleMs: number;
  /** Silence for longer than this before a streamed list is complete: the server knows no such lists. */
  readonly listIdleMs: number;
  /** Silence for longer than this inside a page of a list. */
  readonly pageIdleMs: number;
}

const defaultTuning: ReflectorTuning = {
  backoff: defaultBackoff,
  pageSize: 500,
  watchSeconds: [300, 600],
  idleMs: 150_000,
  listIdleMs: 10_000,
  pageIdleMs: 30_000,
};

export interface ReflectorOptions<R extends ResourceName> extends ObjectIntakeOptions<R> {
  readonly client: RestClient;
  /** Shared by all that talk to the same server. */
  readonly presence: ServerPresence;
  readonly target: WatchTarget;
  readonly clock: Clock;
  readonly random: () => number;
  readonly tuning?: Partial<ReflectorTuning>;
}

/** How often a watch may be refused in a row, for other than passing reasons, before everything is listed again. */
const maxRefusals = 3;
/** What a server that knows no streaming lists answers to the request for one. */
const streamingRefused: readonly number[] = [400, 405, 406, 415, 422, 501];
/** A watch that ends sooner than this without a word has failed, whatever the server calls it. */
const shortWatchMs = 1000;

/**
 * Keeps a copy of one resource in step with the API server: a list, then a watch from where the list ended, for
 * ever. What was delivered stays valid while the server is away; what changed meanwhile is delivered on return.
 */
export class Reflector<R extends ResourceName> {
  readonly #options: ReflectorOptions<R>;
  readonly #tuning: ReflectorTuning;
  readonly #server: ListWatch;
  readonly #intake: ObjectIntake<R>;
  readonly #backoff: Backoff;
  readonly #stop = new AbortController();
  /** Where the next watch begins; undefined while a list is needed. */
  #version: string | undefined;
  #streamsLists = true;
  /** Whether the present watch has brought anything yet. */
  #heard = false;
  #refusals = 0;
  /** From when on a wait may be cut short again, and an expired version again be answered at once with a list. */
  #wakeableAt = 0;
  #freshListAt = 0;

  constructor(options: ReflectorOptions<R>) {
    this.#options = options;
    this.#tuning = { ...defaultTuning, ...options.tuning };
    this.#server = new ListWatch(options);
    this.#intake = new ObjectIntake(options);
    this.#backoff = new Backoff(this.#tuning.backoff, options.random);
  }

  /** Runs until `stop`. Rejects when the sink throws or on a defect, never for what the server does. */
  async run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stop.signal.aborted) {
      const startedAt = clock.monotonic();
      const failure = await this.#attempt();
      if (this.#stop.signal.aborted) return;
      // A connection that held this long was a good one, however it ended.
      if (clock.monotonic() - startedAt >= this.#tuning.backoff.maxMs) this.#backoff.reset();
      if (failure !== undefined) await this.#recover(failure.error);
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Lists if need be, then watches until the server ends that or something fails. */
  async #attempt(): Promise<{ readonly error: unknown } | undefined> {
    try {
      if (this.#version === undefined && !this.#streamsLists) await this.#list();
      await this.#watch();
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  /** Decides what a failure means for the next attempt, and waits for its time. */
  async #recover(error: unknown): Promise<void> {
    const { logger, resource } = this.#options;
    if (this.#isStreamingRefused(error)) {
      this.#streamsLists = false;
      logger.info('The API server does not stream lists; listing in pages', {
        resource,
        reason: String(error),
      });
      return;
    }
    if (this.#isFreshListDue(error)) {
      this.#version = undefined;
      logger.info('The API server no longer knows what changed since; listing again', {
        resource,
        reason: String(error),
      });
      return;
    }
    // A server that was restored from a backup says nothing to those who know more than it does.
    if (error instanceof IdleError && !this.#heard) this.#version = undefined;
    if (error instanceof ApiError) {
      // Lists from every node are the last thing that a server under load or just started needs.
      if (!error.temporary) this.#refusals++;
      if (error.expired || this.#refusals >= maxRefusals) this.#version = undefined;
    } else if (!(error instanceof TransportError || error instanceof StreamError)) {
      throw error;
    }
    const asked = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
    const delay = Math.max(asked, this.#backoff.next());
    logger.error(error, 'Failed to watch', { resource, retryInMs: Math.round(delay) });
    await this.#pause(delay, asked === 0);
  }

  /**
   * Waits, but not longer than until the server answers somebody else, unless it asked for this wait. Not twice in
   * a short time: a server that hangs up on everyone would otherwise be asked without pause.
   */
  async #pause(ms: number, mayWake: boolean): Promise<void> {
    const { clock, presence } = this.#options;
    const { next } = presence;
    const stop = this.#stop.signal;
    const wakeable = mayWake && clock.monotonic() >= this.#wakeableAt;
    await sleep(clock, ms, wakeable ? AbortSignal.any([stop, next]) : stop);
    if (wakeable && next.aborted) this.#wakeableAt = clock.monotonic() + this.#tuning.backoff.maxMs;
  }

  /** A restarted server remembers no changes: the wait for its return is over and need not be followed by another. */
  #isFreshListDue(error: unknown): boolean {
    if (!(error instanceof ApiError && error.expired) || this.#version === undefined) return false;
    const now = this.#options.clock.monotonic();
    if (now < this.#freshListAt) return false;
    this.#freshListAt = now + this.#tuning.backoff.maxMs;
    return true;
  }

  #isStreamingRefused(error: unknown): boolean {
    if (this.#version !== undefined || !this.#streamsLists) return false;
    return (
      error instanceof IdleError || (error instanceof ApiError && streamingRefused.includes(error.status))
    );
  }

  async #list(): Promise<void> {
    const timeSlice = new TimeSlice(this.#options.clock);
    try {
      this.#startFrom(await this.#listPages(this.#tuning.pageSize, timeSlice));
    } catch (error) {
      if (!(error instanceof ApiError && error.expired)) throw error;
      // The pages took longer than the server remembers; a list in one piece cannot expire half-way.
      this.#startFrom(await this.#listPages(0, timeSlice));
    }
  }

  async #listPages(limit: number, timeSlice: TimeSlice): Promise<string> {
    const take = (raw: unknown) => this.#intake.upsert(raw);
    const signal = this.#stop.signal;
    const idleMs = this.#tuning.pageIdleMs;
    this.#intake.beginListing();
    let position = '';
    for (;;) {
      const page = await this.#server.page({ limit, position, idleMs, signal }, take, timeSlice);
      if (page.next === '') {
        await this.#intake.endListing(page.version, timeSlice);
        return page.version;
      }
      if (page.next === position) throw new StreamError('a list whose continue token does not change');
      position = page.next;
    }
  }

  /** One watch, from the known version or, without one, beginning with everything there is. */
  async #watch(): Promise<void> {
    const { clock, random } = this.#options;
    const { watchSeconds, idleMs, listIdleMs } = this.#tuning;
    const [min, max] = watchSeconds;
    if (this.#version === undefined) this.#intake.beginListing();
    const parameters = {
      version: this.#version,
      seconds: Math.round(min + (max - min) * random()),
      idleMs: () => (this.#version === undefined ? listIdleMs : idleMs),
      signal: this.#stop.signal,
    };
    const startedAt = clock.monotonic();
    const timeSlice = new TimeSlice(clock);
    this.#heard = false;
    for await (const event of this.#server.watch(parameters, timeSlice)) {
      await this.#apply(event, timeSlice);
      this.#heard = true;
    }
    if (this.#version === undefined) throw new TransportError('the watch ended before its list was complete');
    if (!this.#heard && clock.monotonic() - startedAt < shortWatchMs) {
      throw new TransportError('the server closed the watch at once');
    }
  }

  async #apply(event: WatchEvent, timeSlice: TimeSlice): Promise<void> {
    if (event.type === 'error') throw event.error;
    if (event.type === 'upsert') this.#intake.upsert(event.object);
    if (event.type === 'delete') this.#intake.remove(event.object, event.version);
    if (this.#version !== undefined) {
      this.#advanceTo(event.version, this.#version);
    } else if (event.type === 'bookmark' && event.initialEventsEnd) {
      await this.#intake.endListing(event.version, timeSlice);
      this.#startFrom(event.version);
    }
  }

  #startFrom(version: string): void {
    this.#version = version;
    this.#refusals = 0;
  }

  /** Only what a watch brings after its list proves that the server is well again. */
  #advanceTo(version: string, known: string): void {
    this.#backoff.reset();
    this.#refusals = 0;
    // Events that come late or twice do not move the place where the next watch begins.
    if (version !== '' && (compareVersions(version, known) ?? 1) > 0) this.#version = version;
  }
}
