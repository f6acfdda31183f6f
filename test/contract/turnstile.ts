/** Limits the number of tasks that run at the same time; the others wait in line. */
export class Turnstile {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(capacity: number) {
    this.#free = capacity;
  }

  async pass<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((admit) => this.#waiting.push(admit));
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
