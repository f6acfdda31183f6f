/** Below the ports that kernels choose, and apart from those on which something of a run listens. */
const ranges = [
  [1_100, 7_999],
  [15_000, 22_999],
] as const;
const ports = ranges.flatMap(([first, last]) =>
  Array.from({ length: last - first + 1 }, (_, i) => first + i),
);

/**
 * Chooses source ports such that no client uses one twice for the same destination. A client that does can meet its own
 * old flow, and sees failures that no proxy causes.
 */
export class SourcePorts {
  readonly #used = new Map<string, Set<number>>();
  readonly #next = new Map<string, number>();

  /** Returns a port that this client has not used for this destination; undefined when none is left. */
  take(client: string, destination: string): number | undefined {
    const used = this.#usedFor(`${client} ${destination}`);
    if (used.size === ports.length) return undefined;
    // Clients go round, so that two destinations with the same endpoint do not see the same port soon.
    let at = this.#next.get(client) ?? 0;
    while (used.has(ports[at % ports.length] as number)) at++;
    this.#next.set(client, at + 1);
    const port = ports[at % ports.length] as number;
    used.add(port);
    return port;
  }

  #usedFor(pair: string): Set<number> {
    const used = this.#used.get(pair) ?? new Set<number>();
    this.#used.set(pair, used);
    return used;
  }
}
