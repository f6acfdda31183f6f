/** How many connections and sessions may be open at a time. */
export interface Limits {
  /** In this process. */
  readonly total: number;
  /** Of one service: one whose endpoints hang must not use up what others need. */
  readonly perService: number;
}

/** How many each of several threads has open: files belong to the process, whichever thread opens them. */
export interface Occupancy {
  /** One number per thread, in memory that all of them see. */
  readonly counts: Int32Array;
  /** Which of them is this thread's. */
  readonly place: number;
}

/** The places of so many threads that share their limits. */
export function sharedOccupancy(threads: number): Occupancy[] {
  const counts = new Int32Array(new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT));
  return Array.from(counts, (_, place) => ({ counts, place }));
}

/**
 * Counts what is open against the limits. Threads that ask at the same moment may each get the last place; the files
 * that are kept in reserve are for that, too.
 */
export class Admission {
  readonly limits: Limits;
  readonly #occupancy: Occupancy;

  /** A thread that takes the place of one that died begins with nothing open. */
  constructor(limits: Limits, occupancy: Occupancy = { counts: new Int32Array(1), place: 0 }) {
    this.limits = limits;
    this.#occupancy = occupancy;
    Atomics.store(occupancy.counts, occupancy.place, 0);
  }

  /** Whether one more may be opened for a service that has so many. */
  isOpen(ofService: number): boolean {
    return ofService < this.limits.perService && this.#open() < this.limits.total;
  }

  enter(): void {
    const { counts, place } = this.#occupancy;
    Atomics.add(counts, place, 1);
  }

  leave(): void {
    const { counts, place } = this.#occupancy;
    Atomics.sub(counts, place, 1);
  }

  #open(): number {
    const { counts } = this.#occupancy;
    let open = 0;
    for (let i = 0; i < counts.length; i++) open += Atomics.load(counts, i);
    return open;
  }
}
