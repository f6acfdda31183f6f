import type { Clock } from '../lib/clock.ts';

/**
 * The part of a core that serving requests may use for longer than a moment. Receiving, sending and the collection of
 * garbage cost more than half of that again, so that HTTP takes about a quarter of a core.
 */
const share = 0.15;
/** HTTP may run ahead of its share by this much time, so that a few requests are served at once. */
const aheadMs = 2;
/** Long answers do not keep others waiting for longer than this. */
const longestPauseMs = 20;

/**
 * A client on this machine, as the kubelet; a client elsewhere that sends one request at a time; one that sends many at
 * once, wherever it is.
 */
export type ClientKind = 'local' | 'prompt' | 'pipelined';

/**
 * The order in which clients of a port take turns. The kubelet restarts the proxy if `/livez` is late, so however many
 * clients elsewhere connect, at most two of them go before it.
 */
const order: readonly ClientKind[] = ['local', 'prompt', 'local', 'pipelined'];

/** A connection with something to do. */
export interface Worker {
  work(): void;
  destroy(): void;
}

/**
 * Shares the event loop between HTTP and the syncs. Work is done at once while HTTP keeps to its share of time. Beyond
 * that it waits in the line of its port, and the ports take turns.
 */
export class Turns {
  readonly #clock: Clock;
  /** Lines in which somebody waits. The first one is next. */
  readonly #busy = new Set<Line>();
  #isScheduled = false;
  /** Until then, the share is used up. */
  #usedUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Has the worker work: now if possible and its client is not `pipelined`, else later. Returns whether it has. */
  take(worker: Worker, line: Line, kind: ClientKind): boolean {
    if (kind !== 'pipelined' && this.#busy.size === 0 && this.#pauseMs <= 0) {
      this.#do(worker);
      return true;
    }
    line.join(worker, kind);
    this.#busy.add(line);
    this.#schedule();
    return false;
  }

  /** The worker that has waited the longest of those that sent many requests at once, in the next line that has some. */
  get oldestPipelined(): Worker | undefined {
    for (const { oldestPipelined } of this.#busy) if (oldestPipelined) return oldestPipelined;
    return undefined;
  }

  /** Counts time that HTTP uses outside of its turns. */
  charge(ms: number): void {
    const now = this.#clock.monotonic();
    this.#usedUntil = Math.max(this.#usedUntil, now) + ms / share;
    this.#usedUntil = Math.min(this.#usedUntil, now + aheadMs / share + longestPauseMs);
  }

  get #pauseMs(): number {
    return this.#usedUntil - this.#clock.monotonic() - aheadMs / share;
  }

  #do(worker: Worker): void {
    const begun = this.#clock.monotonic();
    worker.work();
    this.charge(this.#clock.monotonic() - begun);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const pauseMs = Math.ceil(this.#pauseMs);
    if (pauseMs > 0) this.#clock.setTimeout(() => this.#run(), pauseMs);
    else setImmediate(() => this.#run());
  }

  /** One worker in each turn of the event loop: what else is to be done comes in between. */
  #run(): void {
    this.#isScheduled = false;
    const worker = this.#next();
    if (!worker) return;
    this.#do(worker);
    this.#schedule();
  }

  #next(): Worker | undefined {
    for (const line of this.#busy) {
      const worker = line.next();
      // A set that changes makes garbage, and the order of one line does not matter.
      if (worker && this.#busy.size === 1) return worker;
      this.#busy.delete(line);
      if (!worker) continue;
      this.#busy.add(line);
      return worker;
    }
    return undefined;
  }
}

/** The connections of one port that wait for their turn. Kinds of clients take turns, so that none delays another much. */
export class Line {
  readonly #waiting: Readonly<Record<ClientKind, Set<Worker>>> = {
    local: new Set(),
    prompt: new Set(),
    pipelined: new Set(),
  };
  #turn = 0;

  join(worker: Worker, kind: ClientKind): void {
    this.#waiting[kind].add(worker);
  }

  leave(worker: Worker): void {
    for (const waiting of Object.values(this.#waiting)) waiting.delete(worker);
  }

  /** The next one, which leaves the line. */
  next(): Worker | undefined {
    for (let tried = 0; tried < order.length; tried++) {
      const kind = order[this.#turn++ % order.length] ?? 'prompt';
      const [worker] = this.#waiting[kind];
      if (!worker) continue;
      this.leave(worker);
      return worker;
    }
    return undefined;
  }

  get oldestPipelined(): Worker | undefined {
    const [oldest] = this.#waiting.pipelined;
    return oldest;
  }
}
