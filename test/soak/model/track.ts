interface Held<T> {
  readonly value: T;
  readonly since: number;
  /** When the next value replaced it in the cluster. */
  supersededAt: number;
  /** From when on the program no longer acts on it. */
  goneAt: number;
}

/**
 * The values of one object of the cluster over time. A value may be in effect from the moment when it is put until the
 * program is known to act on a later one.
 */
export class Track<T> {
  #held: Held<T>[];

  constructor(value: T) {
    this.#held = [{ value, since: -Infinity, supersededAt: Infinity, goneAt: Infinity }];
  }

  get latest(): T {
    return (this.#held.at(-1) as Held<T>).value;
  }

  /** Call it before the change is put, so that no connection sees the value before the track has it. */
  set(value: T, at: number): void {
    const last = this.#held.at(-1);
    if (last) last.supersededAt = at;
    this.#held.push({ value, since: at, supersededAt: Infinity, goneAt: Infinity });
  }

  /** All changes until `putBy` are in effect from `now` on. */
  settle(putBy: number, now: number): void {
    for (const held of this.#held) if (held.supersededAt <= putBy) held.goneAt = Math.min(held.goneAt, now);
  }

  /** The values that may have been in effect at some moment of this time. */
  during(begin: number, end: number): T[] {
    return this.#held
      .filter(({ since, goneAt }) => since <= end && goneAt >= begin)
      .map(({ value }) => value);
  }

  /** Forgets values that were gone before this time. */
  forget(before: number): void {
    this.#held = this.#held.filter(({ goneAt }) => goneAt >= before);
  }
}
