import { type EventBody, type EventSeries, microTime } from './event.ts';

/** After this long without an occurrence a series ends: its last count is sent and it is removed. */
const idleMs = 6 * 60_000;
/** How often the count of a series is sent while it goes on. */
const flushMs = 30 * 60_000;

/** An event and its repetitions: how many happened, and how many were reported. Times are monotonic. */
export class Series {
  readonly key: string;
  readonly body: EventBody;
  /** In the queue, or being sent. */
  queued = false;
  #count = 1;
  /** Occurrences that the API server has; 0 = the event is not created yet. */
  #reported = 0;
  #lastObservedNs: bigint;
  #lastSeen: number;
  #lastReport: number;

  constructor(key: string, body: EventBody, unixNs: bigint, now: number) {
    this.key = key;
    this.body = body;
    this.#lastObservedNs = unixNs;
    this.#lastSeen = now;
    this.#lastReport = now;
  }

  /** Counts one more; returns whether to report it at once, which turns a single event into a series. */
  repeat(unixNs: bigint, now: number): boolean {
    this.#count++;
    this.#lastObservedNs = unixNs;
    this.#lastSeen = now;
    return this.#reported <= 1;
  }

  /** Whether the API server has the event. */
  get created(): boolean {
    return this.#reported > 0;
  }

  get hasUnreported(): boolean {
    return this.#count > this.#reported;
  }

  get summary(): EventSeries {
    return { count: this.#count, lastObservedTime: microTime(this.#lastObservedNs) };
  }

  setReported(count: number, now: number): void {
    this.#reported = count;
    this.#lastReport = now;
  }

  isIdle(now: number): boolean {
    return now - this.#lastSeen >= idleMs;
  }

  isDue(now: number): boolean {
    return this.isIdle(now) || now - this.#lastReport >= flushMs;
  }

  /** When to check it next; times in the past were checked and wait to be sent. */
  nextCheck(now: number): number {
    const times = [this.#lastSeen + idleMs, this.#lastReport + flushMs].filter((time) => time > now);
    return Math.min(now + idleMs, ...times);
  }
}
