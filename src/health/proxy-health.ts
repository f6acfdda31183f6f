import type { Clock } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { Problem } from '../model/problem.ts';

interface FamilyState {
  /** When the sync loop started or a sync last succeeded, in wall-clock milliseconds. */
  lastUpdated?: number;
  /** Time of the first request since then, in monotonic milliseconds. */
  oldestPending?: number | undefined;
}

/** Families in the order in which pages show them. */
const families = ['IPv4', 'IPv6'] as const;

/**
 * Tracks whether requested syncs succeed. A proxy without requests stays healthy. One whose syncs fail becomes unhealthy
 * `timeoutMs` after the first request since the last successful sync.
 */
export class ProxyHealth {
  readonly #clock: Clock;
  #timeoutMs: number;
  readonly #families: Readonly<Record<Family, FamilyState>> = { IPv4: {}, IPv6: {} };

  /** `timeoutMs` is twice the sync period. */
  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  setTimeout(timeoutMs: number): void {
    this.#timeoutMs = timeoutMs;
  }

  /** To be called when a sync is requested. */
  queued(family: Family): void {
    this.#families[family].oldestPending ??= this.#clock.monotonic();
  }

  /** To be called when a sync succeeded, and when the sync loop starts. */
  updated(family: Family): void {
    const state = this.#families[family];
    state.oldestPending = undefined;
    state.lastUpdated = this.#clock.now();
  }

  /** When the sync loop of each family started or a sync last succeeded, in wall-clock milliseconds. IPv4 before IPv6. */
  lastUpdated(): ReadonlyMap<Family, number> {
    const times = new Map<Family, number>();
    for (const family of families) {
      const { lastUpdated } = this.#families[family];
      if (lastUpdated !== undefined) times.set(family, lastUpdated);
    }
    return times;
  }

  /** Families whose syncs are overdue. A family whose loop has not started yet is none of them. */
  problems(): Problem[] {
    const now = this.#clock.monotonic();
    return families.flatMap((family) => {
      const { lastUpdated, oldestPending } = this.#families[family];
      if (lastUpdated === undefined || oldestPending === undefined) return [];
      const waited = now - oldestPending;
      if (waited < this.#timeoutMs) return [];
      const since = this.#clock.now() - waited;
      return [
        { kind: 'SyncOverdue', family, since, isOutage: true, text: 'changes are not written to the kernel' },
      ];
    });
  }
}
