import type { ReadyQueue, Sockets } from '../native/sockets.ts';

export interface ReadyHandler {
  /** `events` are epoll bits. */
  ready(events: number): void;
}

/** A handler with work left after its share of a round. */
export interface Unfinished {
  resume(): void;
}

const eventsAtOnce = 512;
/** Rounds before Node's timers and messages get their turn. */
const maxRounds = 4;

/**
 * Calls handlers when their descriptors are ready (epoll). It is either attached to Node's event loop, where one
 * callback serves many descriptors, or turned by a thread that does nothing else.
 */
export class EventLoop {
  readonly #queue: ReadyQueue;
  readonly #handlers: (ReadyHandler | undefined)[] = [];
  readonly #free: number[] = [];
  /** Tokens to reuse only after this round: events already fetched may still name them. */
  readonly #freed: number[] = [];
  #unfinished: Unfinished[] = [];
  #isAttached = false;
  #isScheduled = false;
  #isClosed = false;

  constructor(sockets: Sockets) {
    this.#queue = sockets.openQueue(eventsAtOnce);
  }

  /** Joins Node's event loop; in the main thread only. */
  attach(): void {
    this.#isAttached = true;
    this.#queue.watch(() => this.#run());
  }

  /** Waits up to `timeoutMs` for events and handles them. */
  turn(timeoutMs: number): void {
    if (!this.#isClosed) this.#round(this.#unfinished.length > 0 ? 0 : timeoutMs);
  }

  /** Starts watching. Returns a token for `unwatch`, or a negative errno value. */
  watch(fd: number, events: number, handler: ReadyHandler): number {
    const token = this.#free.pop() ?? this.#handlers.length;
    const result = this.#queue.add(fd, events, token);
    if (result < 0) {
      if (token < this.#handlers.length) this.#free.push(token);
      return result;
    }
    this.#handlers[token] = handler;
    return token;
  }

  /** Stops watching. Pass the descriptor if it stays open; a closed one leaves the queue by itself. */
  unwatch(token: number, openFd?: number): void {
    if (openFd !== undefined) this.#queue.remove(openFd);
    this.#handlers[token] = undefined;
    this.#freed.push(token);
  }

  /** Calls `resume` after other handlers had their turn. */
  later(handler: Unfinished): void {
    this.#unfinished.push(handler);
    this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    this.#queue.close();
  }

  #run(): void {
    for (let round = 0; round < maxRounds && !this.#isClosed; round++) {
      if (this.#round(0) < eventsAtOnce) return;
    }
  }

  #round(timeoutMs: number): number {
    const count = this.#queue.poll(timeoutMs);
    for (let i = 0; i < count; i++) this.#handlers[this.#queue.token(i)]?.ready(this.#queue.events(i));
    this.#free.push(...this.#freed.splice(0));
    this.#resume();
    return count;
  }

  #resume(): void {
    const unfinished = this.#unfinished;
    if (unfinished.length === 0) return;
    this.#unfinished = [];
    for (const handler of unfinished) handler.resume();
  }

  #schedule(): void {
    if (!this.#isAttached || this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (!this.#isClosed) this.#run();
    });
  }
}
