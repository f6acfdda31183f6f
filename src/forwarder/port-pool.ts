/** A range of ports, both ends included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

const maxPort = 65_535;

/**
 * Reads `a-b`, `a+n` (a and the n ports after it) or a single port. Returns undefined for an empty text, 0 and 0-0: the
 * system then chooses. Throws an Error that quotes the text if it is anything else.
 */
export function parsePortRange(text: string): PortRange | undefined {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed === '0' || trimmed === '0-0') return undefined;
  const match = /^(\d{1,6})(?:([-+])(\d{1,6}))?$/.exec(trimmed);
  if (!match) throw new Error(`${JSON.stringify(text)} is not a port range`);
  const first = Number(match[1]);
  const second = Number(match[3] ?? first);
  const last = match[2] === '+' ? first + second : second;
  if (last > maxPort) throw new Error(`port range ${JSON.stringify(text)} ends above ${maxPort}`);
  if (last < first) throw new Error(`port range ${JSON.stringify(text)} ends before it begins`);
  return { first, last };
}

/** Allocates the ports that proxy sockets listen on. */
export class PortPool {
  readonly #range: PortRange | undefined;
  readonly #random: () => number;
  readonly #used = new Set<number>();

  /** Without a range, `allocate` always returns 0: the system chooses. */
  constructor(range: PortRange | undefined, random: () => number) {
    this.#range = range;
    this.#random = random;
  }

  /** Returns a free port, searching from a random start. Throws when none is left. */
  allocate(): number {
    if (!this.#range) return 0;
    const { first, last } = this.#range;
    const size = last - first + 1;
    const start = Math.floor(this.#random() * size);
    for (let step = 0; step < size; step++) {
      const port = first + ((start + step) % size);
      if (this.#used.has(port)) continue;
      this.#used.add(port);
      return port;
    }
    throw new Error(`no ports remaining in ${first}-${last}`);
  }

  release(port: number): void {
    this.#used.delete(port);
  }

  /** How often to allocate again when a port turns out to be in use by another program. */
  get attempts(): number {
    return this.#range ? this.#range.last - this.#range.first + 1 : 1;
  }
}
