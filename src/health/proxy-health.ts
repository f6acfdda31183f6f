import type { Clock } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';

/** How one family stands. */
export interface FamilyHealth {
  /** Wall-clock milliseconds of its latest successful sync. */
  readonly lastUpdated: number;
  readonly healthy: boolean;
}

/** How the proxy stands. Families that never synced are not in it. */
export interface Health {
  readonly healthy: boolean;
  /** The newest `lastUpdated` of all families; undefined before the first sync. */
  readonly lastUpdated: number | undefined;
  /** IPv4 before IPv6. */
  readonly families: ReadonlyMap<Family, FamilyHealth>;
}

interface FamilyState {
  lastUpdated?: number;
  /** Monotonic milliseconds of the first request that no sync has answered yet. */
  oldestPending?: number | undefined;
}

/**
 * Watches whether requested syncs come to an end. A proxy with nothing to do stays healthy for ever; one whose
 * syncs fail becomes unhealthy `timeoutMs` after the first request that was not met.
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

  /** A sync was asked for. */
  queued(family: Family): void {
    this.#families[family].oldestPending ??= this.#clock.monotonic();
  }

  /** A sync succeeded, or the sync loop has just started. */
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
