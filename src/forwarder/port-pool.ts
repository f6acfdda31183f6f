import type { PortRange } from './port-range.ts';

/** No port of the range is free. */
export class NoPortError extends Error {
  constructor({ first, last }: PortRange) {
    super(`no ports remaining in ${first}-${last}`);
    this.name = 'NoPortError';
  }
}

/** Gives out the ports that proxy sockets listen on. */
export class PortPool {
  readonly #range: PortRange | undefined;
  readonly #random: () => number;
  readonly #used = new Set<number>();

  /** Without a range the system chooses, which port 0 stands for. */
  constructor(range: PortRange | undefined, random: () => number) {
    this.#range = range;
    this.#random = random;
  }

  /** A port that nobody has, starting the search anywhere; throws NoPortError. */
  allocate(): number {
    const range = this.#range;
    if (!range) return 0;
    const size = range.last - range.first + 1;
    const start = Math.floor(this.#random() * size);
    for (let step = 0; step < size; step++) {
      const port = range.first + ((start + step) % size);
      if (this.#used.has(port)) continue;
      this.#used.add(port);
      return port;
    }
    throw new NoPortError(range);
  }

  release(port: number): void {
    this.#used.delete(port);
  }

  /** How often it is worth asking again when a port turns out to be in use by another program. */
  get attempts(): number {
    return this.#range ? this.#range.last - this.#range.first + 1 : 1;
  }
}
