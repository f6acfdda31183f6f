import type { ReadyQueue, Sockets } from '../native/sockets.ts';

/** Told what a descriptor is ready for, as epoll bits. */
export interface ReadyHandler {
  ready(events: number): void;
}

/** Something that had more to do than was fair to others, and goes on later. */
export interface Unfinished {
  resume(): void;
}

const eventsAtOnce = 512;
/** Rounds before timers and messages of this thread get their turn. */
const maxRounds = 4;

/**
 * Tells handlers when their descriptors are ready. Either attached to Node's event loop, where one callback serves
 * many descriptors, or turned by a thread that does nothing else.
 */
export class EventLoop {
  readonly #queue: ReadyQueue;
  readonly #handlers: (ReadyHandler | undefined)[] = [];
  /** Tokens that can be given again: not before the events at hand, which may name them, have been told. */
  readonly #free: number[] = [];
  readonly #freed: number[] = [];
  #unfinished: Unfinished[] = [];
  #isAttached = false;
  #isScheduled = false;
  #isClosed = false;

  constructor(sockets: Sockets) {
    this.#queue = sockets.openQueue(eventsAtOnce);
  }

  /** Becomes part of Node's event loop; in the main thread only. */
  attach(): void {
    this.#isAttached = true;
    this.#queue.watch(() => this.#run());
  }

  /** Waits so long for something to do, and does it. */
  turn(timeoutMs: number): void {
    if (!this.#isClosed) this.#round(this.#unfinished.length > 0 ? 0 : timeoutMs);
  }

  /** Begins to watch; a token to stop with, or a negative errno value. */
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

  /** Stops; a descriptor that stays open must be named. One that is closed leaves the queue by itself. */
  unwatch(token: number, openFd?: number): void {
    if (openFd !== undefined) this.#queue.remove(openFd);
    this.#handlers[token] = undefined;
    this.#freed.push(token);
  }

  /** Resumes a handler after the others had their turn. */
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
