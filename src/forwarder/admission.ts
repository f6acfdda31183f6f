/** How many connections and sessions may be open at a time. */
export interface Limits {
  /** In this thread. */
  readonly total: number;
  /** Of one service: one whose endpoints hang must not use up what others need. */
  readonly perService: number;
}

/** Counts what is open against the limits. */
export class Admission {
  readonly limits: Limits;
  #open = 0;

  constructor(limits: Limits) {
    this.limits = limits;
  }

  /** Whether one more may be opened for a service that has so many. */
  isOpen(ofService: number): boolean {
    return this.#open < this.limits.total && ofService < this.limits.perService;
  }

  enter(): void {
    this.#open++;
  }

  leave(): void {
    this.#open--;
  }
}
