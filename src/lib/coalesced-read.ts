/**
 * A slow read that concurrent callers share. Callers that arrive during a read share the next one, so none gets data
 * that is older than its call.
 */
export class CoalescedRead<T> {
  readonly #read: () => Promise<T>;
  #current: Promise<T> | undefined;
  /** Waits for the current read to end. */
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
