import { EMFILE } from '../native/sockets.ts';
import { SystemError } from '../native/system-error.ts';

/** What the forwarder may have open at a time. */
export interface Limits {
  /** Files of this process, for traffic and for the sockets that wait for it. */
  readonly files: number;
  /** How many of them wait for traffic, or hold a port: without connections they are of no use. */
  readonly listening: number;
  /** Files beyond those, for listeners that come when connections have taken all. */
  readonly spare: number;
  /** Connections and sessions of one service: one whose endpoints hang must not use up what others need. */
  readonly perService: number;
}

/** What each of several threads has open, in memory that all of them see: files belong to the process. */
export interface Occupancy {
  /** One number per thread. */
  readonly files: Int32Array;
  readonly listening: Int32Array;
  /** Which of them is this thread's. */
  readonly place: number;
}

/** The places of so many threads that share their limits. */
export function sharedOccupancy(threads: number): Occupancy[] {
  const numbers = () => new Int32Array(new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT));
  const shared = { files: numbers(), listening: numbers() };
  return Array.from(shared.files, (_, place) => ({ ...shared, place }));
}

/**
 * Counts open files against the limits. Threads that ask at the same moment may each get the last place; the files
 * that are kept in reserve are for that, too.
 */
export class Admission {
  readonly #limits: Limits;
  readonly #occupancy: Occupancy;

  /** A thread that takes the place of one that died begins with nothing open. */
  constructor(
    limits: Limits,
    occupancy: Occupancy = { files: new Int32Array(1), listening: new Int32Array(1), place: 0 },
  ) {
    this.#limits = limits;
    this.#occupancy = occupancy;
    for (const numbers of [occupancy.files, occupancy.listening]) Atomics.store(numbers, occupancy.place, 0);
  }

  /** Whether one more connection or session may be opened for a service that has so many. */
  isOpen(ofService: number): boolean {
    return ofService < this.#limits.perService && this.#files < this.#limits.files;
  }

  /** Whether there are files for what would do without. */
  get hasPlenty(): boolean {
    return this.#files < this.#limits.files / 2;
  }

  /** Whether there are files for what cannot wait. */
  get hasSpare(): boolean {
    return this.#files < this.#limits.files + this.#limits.spare;
  }

  enter(files: number): void {
    Atomics.add(this.#occupancy.files, this.#occupancy.place, files);
  }

  leave(files: number): void {
    Atomics.sub(this.#occupancy.files, this.#occupancy.place, files);
  }

  /** Opens a socket that waits for traffic or holds a port. Throws SystemError when there are too many, or as `open` does. */
  listen<T>(open: () => T): T {
    const { listening, place } = this.#occupancy;
    if (!this.hasSpare || sum(listening) >= this.#limits.listening) throw new SystemError('socket', EMFILE);
    const opened = open();
    this.enter(1);
    Atomics.add(listening, place, 1);
    return opened;
  }

  /** After one of those was closed. */
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
