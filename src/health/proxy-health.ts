import type { Clock } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';

export interface FamilyHealth {
  /** Time of the last successful sync, in wall-clock milliseconds. */
  readonly lastUpdated: number;
  readonly healthy: boolean;
}

/** Health of the proxy, without families that never synced. */
export interface Health {
  readonly healthy: boolean;
  /** The newest `lastUpdated` of all families; undefined before the first sync. */
  readonly lastUpdated: number | undefined;
  /** IPv4 before IPv6. */
  readonly families: ReadonlyMap<Family, FamilyHealth>;
}

interface FamilyState {
  lastUpdated?: number;
  /** Time of the first request since the last successful sync, in monotonic milliseconds. */
  oldestPending?: number | undefined;
}

/**
 * Tracks whether requested syncs succeed. A proxy without requests stays healthy. One whose syncs fail becomes unhealthy
 * `timeoutMs` after the first request since the last successful sync.
 */
export class ProxyHealth {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #families: Readonly<Record<Family, FamilyState>> = { IPv4: {}, IPv6: {} };

  /** `timeoutMs` is twice the sync period. */
  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
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

  get healthy(): boolean {
    return this.health().healthy;
  }

  health(): Health {
    const now = this.#clock.monotonic();
    const families = new Map<Family, FamilyHealth>();
    for (const family of ['IPv4', 'IPv6'] as const) {
      const { lastUpdated, oldestPending } = this.#families[family];
      if (lastUpdated === undefined) continue;
      const late = oldestPending !== undefined && now - oldestPending >= this.#timeoutMs;
      families.set(family, { lastUpdated, healthy: !late });
    }
    const all = [...families.values()];
    return {
      healthy: all.every(({ healthy }) => healthy),
      lastUpdated: all.length === 0 ? undefined : Math.max(...all.map(({ lastUpdated }) => lastUpdated)),
      families,
    };
  }
}
