import type { SliceEntry } from './slice-entry.ts';

/** An endpoint that is gone. */
export interface Departed {
  readonly ip: string;
  readonly port: number;
}

/** Departed endpoints, by `ip:port`. */
export type DepartedEndpoints = ReadonlyMap<string, Departed>;

/**
 * An endpoint that moves from one slice to another may be in neither for a moment, since events come one by one: only an
 * absence of this length counts.
 */
export const absenceMs = 1_000;
/** How long a departed endpoint stays on the list: clients that are silent for longer get no reset. */
export const departedMs = 600_000;
/** When more endpoints depart within that time, the earliest ones leave the list. */
export const maxDeparted = 10_000;

/**
 * Finds TCP endpoints that are gone: some Service that wants to know named them, and no slice of any Service names them
 * any more, in any condition. Counts nothing before the first such Service. Times are by the monotonic clock.
 */
export class Departures {
  /** How often slices name each endpoint; undefined until a Service wants to know. */
  #named: Map<string, number> | undefined;
  /** Endpoints that a Service that wants to know has given up, while slices name them still or again. */
  readonly #elsewhere = new Set<string>();
  /** Endpoints that no slice names, since when, the earliest first. They have not been absent for long. */
  readonly #absent = new Map<string, Departed & { readonly since: number | undefined }>();
  /** The earliest first. */
  readonly #departed = new Map<string, Departed & { readonly until: number }>();

  get current(): DepartedEndpoints {
    return this.#departed;
  }

  get isActive(): boolean {
    return this.#named !== undefined;
  }

  /** Starts to count, with the slices that there are. */
  activate(slices: Iterable<SliceEntry>): void {
    this.#named = new Map();
    for (const slice of slices) this.add(slice);
  }

  /** Takes a slice that came, or the new version of one that changed: after `remove` with the old one. */
  add(slice: SliceEntry): void {
    const named = this.#named;
    if (!named) return;
    for (const { id } of endpointsIn(slice)) {
      named.set(id, (named.get(id) ?? 0) + 1);
      // Connections from before may be open: if only Services that do not ask name it now, it can depart all the same.
      if (this.#absent.delete(id) || this.#departed.delete(id)) this.#elsewhere.add(id);
    }
  }

  /** Takes a slice that went, or the old version of one that changed. `isWanted`: its Service wants to know. */
  remove(slice: SliceEntry, isWanted: boolean): void {
    const named = this.#named;
    if (!named) return;
    for (const { id, ip, port } of endpointsIn(slice)) {
      const count = (named.get(id) ?? 0) - 1;
      if (isWanted) this.#elsewhere.add(id);
      if (count > 0) {
        named.set(id, count);
        continue;
      }
      named.delete(id);
      if (this.#elsewhere.delete(id)) this.#absent.set(id, { ip, port, since: undefined });
    }
  }

  /** Brings the list up to date. Call it when all slices that are known have been taken. */
  settle(now: number): void {
    for (const [id, { ip, port, since }] of this.#absent) {
      if (since === undefined) this.#absent.set(id, { ip, port, since: now });
      else if (since + absenceMs <= now) {
        this.#absent.delete(id);
        this.#departed.set(id, { ip, port, until: now + departedMs });
      }
    }
    for (const [id, { until }] of this.#departed) {
      if (until > now && this.#departed.size <= maxDeparted) break;
      this.#departed.delete(id);
    }
  }

  /** When `settle` has something to do without further changes; undefined when it has not. */
  get dueAt(): number | undefined {
    const [absent] = this.#absent.values();
    const [departed] = this.#departed.values();
    const times = [absent && (absent.since ?? 0) + absenceMs, departed?.until];
    const due = times.filter((time) => time !== undefined);
    return due.length === 0 ? undefined : Math.min(...due);
  }
}

function* endpointsIn({ lists }: SliceEntry) {
  for (const { protocol, endpoints } of lists) if (protocol === 'TCP') yield* endpoints;
}
