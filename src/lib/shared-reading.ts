/**
 * Reads something that takes a while, once for all who ask meanwhile. What anybody gets was read after they asked: who
 * asks together shares a reading, and who asks while one is under way shares the next.
 */
export class SharedReading<T> {
  readonly #read: () => Promise<T>;
  /** Under way. */
  #current: Promise<T> | undefined;
  /** Not begun. */
  #next: Promise<T> | undefined;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  get(): Promise<T> {
    const begin = () => this.#begin();
    this.#next ??= (this.#current ?? Promise.resolve()).then(begin, begin);
    return this.#next;
  }

  #begin(): Promise<T> {
    this.#next = undefined;
    const reading = this.#read().finally(() => {
      if (this.#current === reading) this.#current = undefined;
    });
    this.#current = reading;
    return reading;
  }
}
