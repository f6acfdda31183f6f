import { type EventBody, type EventSeries, microTime } from './event.ts';

/** A series that saw nothing new for this long is over: its last count is sent and it is forgotten. */
const idleMs = 6 * 60_000;
/** How often the count of a living series is sent. */
const flushMs = 30 * 60_000;

/** An event and its repetitions: what happened, and what the API server was told. Times are monotonic. */
export class Series {
  readonly key: string;
  readonly body: EventBody;
  /** Waits to be sent, or is being sent. */
  queued = false;
  #count = 1;
  /** Occurrences the API server was told of; 0 = it has no such event yet. */
  #told = 0;
  #lastObservedNs: bigint;
  #lastSeen: number;
  #lastTold: number;

  constructor(key: string, body: EventBody, unixNs: bigint, now: number) {
    this.key = key;
    this.body = body;
    this.#lastObservedNs = unixNs;
    this.#lastSeen = now;
    this.#lastTold = now;
  }

  /** Counts one more; true when the API server should hear of it at once: the second makes it a series. */
  repeat(unixNs: bigint, now: number): boolean {
    this.#count++;
    this.#lastObservedNs = unixNs;
    this.#lastSeen = now;
    return this.#told <= 1;
  }

  /** The API server has the event. */
  get created(): boolean {
    return this.#told > 0;
  }

  get hasUntold(): boolean {
    return this.#count > this.#told;
  }

  get summary(): EventSeries {
    return { count: this.#count, lastObservedTime: microTime(this.#lastObservedNs) };
  }

  tell(count: number, now: number): void {
    this.#told = count;
    this.#lastTold = now;
  }

  isIdle(now: number): boolean {
    return now - this.#lastSeen >= idleMs;
  }

  isDue(now: number): boolean {
    return this.isIdle(now) || now - this.#lastTold >= flushMs;
  }

  /** When to look at it next; what is overdue has been looked at and waits to be sent. */
  nextLook(now: number): number {
    const times = [this.#lastSeen + idleMs, this.#lastTold + flushMs].filter((time) => time > now);
    return Math.min(now + idleMs, ...times);
  }
}
