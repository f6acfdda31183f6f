import type { Clock, Timer } from '../../lib/clock.ts';
import type { Logger } from '../../obs/log.ts';
import type { EventRequest, SendEvent } from './delivery.ts';
import { Delivery } from './delivery.ts';
import { type EventInput, type EventSeries, eventBody, seriesKey } from './event.ts';
import { Series } from './series.ts';

const maxSeries = 1_000;

export interface EventRecorderOptions {
  readonly send: SendEvent;
  readonly clock: Clock;
  /** The host name of the operating system; part of `reportingInstance`. */
  readonly hostName: string;
  readonly logger: Logger;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/**
 * Sends events to the API server in the background, one after the other. Events recorded before `attach()` are sent
 * after it. At most 1,000 different events are kept; while all of them wait to be sent or counted, new ones are dropped
 * and logged.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #delivery: Delivery;
  readonly #series = new Map<string, Series>();
  readonly #queue: Series[] = [];
  readonly #flushes = new Set<() => void>();
  #state: 'detached' | 'attached' | 'closed' = 'detached';
  #sending = false;
  #dropped = 0;
  #lastNs = 0n;
  #sweepTimer: Timer | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#delivery = new Delivery(options);
  }

  /** Records an event. Never throws and never waits. */
  event(input: EventInput): void {
    if (this.#state === 'closed') return;
    const key = seriesKey(input);
    const known = this.#series.get(key);
    if (known) {
      if (known.repeat(this.#nextNs(), this.#now())) this.#enqueue(known);
    } else if (this.#makeRoom()) {
      const ns = this.#nextNs();
      const series = new Series(key, eventBody(input, this.#options.hostName, ns), ns, this.#now());
      this.#series.set(key, series);
      this.#enqueue(series);
    } else {
      this.#drop(input);
    }
    this.#scheduleSweep();
  }

  /** Starts sending. */
  attach(): void {
    if (this.#state !== 'detached') return;
    this.#state = 'attached';
    this.#pump();
  }

  /**
   * Sends everything, including counts of running series, also before `attach()`. Resolves when it is sent or given
   * up, at the latest after `deadlineMs`. Call it before an exit.
   */
  async flush(deadlineMs: number): Promise<void> {
    this.attach();
    for (const series of this.#series.values()) if (series.hasUnreported) this.#enqueue(series);
    this.#delivery.hurry();
    if (!this.#sending) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        timer.cancel();
        this.#flushes.delete(done);
        resolve();
      };
      const timer = this.#options.clock.setTimeout(done, deadlineMs);
      this.#flushes.add(done);
    });
  }

  /** Stops at once; unsent events are lost. */
  close(): void {
    this.#state = 'closed';
    this.#sweepTimer?.cancel();
    this.#queue.length = 0;
    this.#series.clear();
    this.#delivery.close();
    this.#endFlushes();
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }

  /**
   * The time in nanoseconds, never the same twice. Digits below the clock's millisecond are random: events of many
   * nodes about one Service must not get the same name.
   */
  #nextNs(): bigint {
    const ms = BigInt(Math.floor(this.#options.clock.now()));
    const ns = ms * 1_000_000n + BigInt(Math.floor(this.#options.random() * 1_000_000));
    this.#lastNs = ns > this.#lastNs ? ns : this.#lastNs + 1_000n;
    return this.#lastNs;
  }

  /** When full, removes the oldest event that is completely reported; returns false if there is none. */
  #makeRoom(): boolean {
    if (this.#series.size < maxSeries) return true;
    for (const series of this.#series.values()) {
      if (!series.hasUnreported && !series.queued) return this.#series.delete(series.key);
    }
    return false;
  }

  #drop({ regarding, reason }: EventInput): void {
    this.#dropped++;
    if (this.#dropped > 1) return;
    const error = new Error(`${maxSeries} events wait to be sent`);
    this.#options.logger.error(error, 'Dropping events', { reason, regarding: regarding.name });
  }

  #enqueue(series: Series): void {
    if (series.queued) return;
    series.queued = true;
    this.#queue.push(series);
    this.#pump();
  }

  #pump(): void {
    if (this.#state === 'attached' && !this.#sending && this.#queue.length > 0) void this.#drain();
  }

  async #drain(): Promise<void> {
    this.#sending = true;
    for (let series = this.#queue.shift(); series; series = this.#queue.shift()) {
      const isNew = !series.created;
      const known = await (isNew ? this.#create(series) : this.#update(series));
      series.queued = false;
      if (this.#state === 'closed') break;
      // Send at once what was repeated while the event was created, and everything during a flush.
      if (known && series.hasUnreported && (isNew || this.#flushes.size > 0)) this.#enqueue(series);
      else if (!known || series.isIdle(this.#now())) this.#series.delete(series.key);
    }
    this.#sending = false;
    if (this.#dropped > 0) this.#options.logger.info('Events were dropped', { count: this.#dropped });
    this.#dropped = 0;
    this.#endFlushes();
  }

  #endFlushes(): void {
    for (const done of [...this.#flushes]) done();
  }

  /** Returns whether the API server has the event. */
  async #create(series: Series): Promise<boolean> {
    const status = await this.#send(series, postOf(series));
    // A conflict means that an earlier try succeeded and only its answer was lost.
    const exists = isSuccess(status) || status === 409;
    if (exists) series.setReported(1, this.#now());
    return exists;
  }

  async #update(series: Series): Promise<boolean> {
    const { summary } = series;
    const status = await this.#send(series, patchOf(series, summary), 404);
    // Events expire on the server; a series that goes on is then created again.
    if (status === 404) await this.#send(series, postOf(series, summary));
    series.setReported(summary.count, this.#now());
    return true;
  }

  /** Returns the status of the answer, 0 for none. Logs failures except the `expected` status. */
  async #send(series: Series, request: EventRequest, expected?: number): Promise<number> {
    const about = { event: series.body.metadata.name, reason: series.body.reason };
    try {
      const { status, message } = await this.#delivery.deliver(request);
      if (!isSuccess(status) && status !== expected && status !== 409) {
        const error = new Error(message ?? `status ${status}`);
        this.#options.logger.error(error, 'The API server refused an event', { ...about, status });
      }
      return status;
    } catch (error) {
      if (this.#state !== 'closed') this.#options.logger.error(error, 'Gave up sending an event', about);
      return 0;
    }
  }

  /** Sends the counts of series that are due, and removes those that have ended. */
  #sweep(): void {
    const now = this.#now();
    for (const series of [...this.#series.values()]) {
      if (series.queued || !series.isDue(now)) continue;
      if (series.hasUnreported) this.#enqueue(series);
      else if (series.isIdle(now)) this.#series.delete(series.key);
    }
    this.#scheduleSweep();
  }

  /** A sweep that is already scheduled is early enough for later events. */
  #scheduleSweep(): void {
    if (this.#sweepTimer || this.#series.size === 0) return;
    const now = this.#now();
    let next = Number.POSITIVE_INFINITY;
    for (const series of this.#series.values()) next = Math.min(next, series.nextCheck(now));
    this.#sweepTimer = this.#options.clock.setTimeout(() => {
      this.#sweepTimer = undefined;
      this.#sweep();
    }, next - now);
  }
}

function eventsPath(series: Series): string {
  return `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(series.body.metadata.namespace)}/events`;
}

function postOf(series: Series, summary?: EventSeries): EventRequest {
  const body = summary ? { ...series.body, series: summary } : series.body;
  return { method: 'POST', path: eventsPath(series), body, contentType: 'application/json' };
}

function patchOf(series: Series, summary: EventSeries): EventRequest {
  return {
    method: 'PATCH',
    path: `${eventsPath(series)}/${encodeURIComponent(series.body.metadata.name)}`,
    body: { series: summary },
    contentType: 'application/strategic-merge-patch+json',
  };
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
