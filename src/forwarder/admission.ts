import { EMFILE } from '../native/sockets.ts';
import { SystemError } from '../native/system-error.ts';

/** How many files the forwarder may have open at a time. */
export interface Limits {
  /** Open files for connections, sessions, pipes, listeners and held ports together. */
  readonly files: number;
  /** The part of them that listeners and held ports may take; the rest stays free for connections. */
  readonly listening: number;
  /** Files beyond `files`, for listeners that arrive when connections have taken all. */
  readonly spare: number;
  /** Connections and sessions of one service, so that a service with hanging endpoints cannot block the others. */
  readonly perService: number;
}

/** Open files of each thread, in shared memory: the limit on open files applies to the process. */
export interface Occupancy {
  /** One number per thread. */
  readonly files: Int32Array;
  readonly listening: Int32Array;
  /** Index of this thread. */
  readonly place: number;
}

/** Makes the occupancies of `threads` threads that share their limits. */
export function sharedOccupancy(threads: number): Occupancy[] {
  const numbers = () => new Int32Array(new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT));
  const shared = { files: numbers(), listening: numbers() };
  return Array.from(shared.files, (_, place) => ({ ...shared, place }));
}

/**
 * Counts open files against the limits. Two threads that ask at the same moment may both get the last file; the
 * reserve (see limitsFor) covers that.
 */
export class Admission {
  readonly #limits: Limits;
  readonly #occupancy: Occupancy;

  /** Resets the counts of this thread: a thread that replaces a dead one starts with nothing open. */
  constructor(
    limits: Limits,
    occupancy: Occupancy = { files: new Int32Array(1), listening: new Int32Array(1), place: 0 },
  ) {
    this.#limits = limits;
    this.#occupancy = occupancy;
    for (const numbers of [occupancy.files, occupancy.listening]) Atomics.store(numbers, occupancy.place, 0);
  }

  /** Whether a service with `open` connections and sessions may have one more. */
  admits(open: number): boolean {
    return open < this.#limits.perService && this.#files < this.#limits.files;
  }

  /** Whether there are files for optional use (pipes). */
  get hasPlenty(): boolean {
    return this.#files < this.#limits.files / 2;
  }

  /** Whether there are files, counting the spare ones. */
  get hasSpare(): boolean {
    return this.#files < this.#limits.files + this.#limits.spare;
  }

  enter(files: number): void {
    Atomics.add(this.#occupancy.files, this.#occupancy.place, files);
  }

  leave(files: number): void {
    Atomics.sub(this.#occupancy.files, this.#occupancy.place, files);
  }

  /** Opens and counts a listener or held port. Throws SystemError EMFILE at the limit, and whatever `open` throws. */
  listen<T>(open: () => T): T {
    const { listening, place } = this.#occupancy;
    if (!this.hasSpare || sum(listening) >= this.#limits.listening) throw new SystemError('socket', EMFILE);
    const opened = open();
    this.enter(1);
    Atomics.add(listening, place, 1);
    return opened;
  }

  /** To be called after a listener or held port was closed. */
  unlisten(): void {
    this.leave(1);
    Atomics.sub(this.#occupancy.listening, this.#occupancy.place, 1);
  }

  get #files(): number {
    return sum(this.#occupancy.files);
  }
}

function sum(numbers: Int32Array): number {
  let total = 0;
  for (let i = 0; i < numbers.length; i++) total += Atomics.load(numbers, i);
  return total;
}
