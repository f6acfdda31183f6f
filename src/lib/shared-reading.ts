/**
 * Reads something that takes a while, once for all who ask meanwhile. What anybody gets was read after they asked: who
 * asks while a reading is under way shares the next one.
 */
export class SharedReading<T> {
  readonly #read: () => Promise<T>;
  #current: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  get(): Promise<T> {
    if (this.#next) return this.#next;
    if (!this.#current) return this.#start();
    const start = () => {
      this.#next = undefined;
      return this.#start();
    };
    this.#next = this.#current.then(start, start);
    return this.#next;
  }

  #start(): Promise<T> {
    const reading = this.#read().finally(() => {
      if (this.#current === reading) this.#current = undefined;
    });
    this.#current = reading;
    return reading;
  }
}
