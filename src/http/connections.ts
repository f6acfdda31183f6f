import type { Clock, Timer } from '../lib/clock.ts';
import type { Turns, Worker } from './turns.ts';

/** Connections of all ports together. One more makes room for itself by ending another. */
const mostConnections = 256;
/** Bytes that were read and not used, or written and not sent, of all connections together. */
const mostBytes = 4 << 20;
/** A client that has let its connection wait for this long goes before one that has just connected. */
const slowMs = 1_000;
const sweepMs = 5_000;

/** A connection as far as its place is concerned. */
export interface Tenant extends Worker {
  /** Bytes that it keeps in memory. */
  readonly bytes: number;
  destroy(): void;
}

interface Wait {
  readonly since: number;
  readonly until: number;
}

/** Bounds what the connections of all ports take, and ends those whose clients let them wait too long. */
export class Connections {
  readonly #clock: Clock;
  readonly #turns: Turns;
  readonly #all = new Set<Tenant>();
  /** Those that wait for their clients. Who has waited the longest is first. */
  readonly #waiting = new Map<Tenant, Wait>();
  #bytes = 0;
  #sweep: Timer | undefined;

  constructor(clock: Clock, turns: Turns) {
    this.#clock = clock;
    this.#turns = turns;
  }

  add(tenant: Tenant): void {
    if (this.#all.size >= mostConnections) this.#leastMissed()?.destroy();
    this.#all.add(tenant);
    this.#sweep ??= this.#clock.setTimeout(() => this.#endOverdue(), sweepMs);
  }

  /** Call it when the connection is closed, after its last `hold`. */
  remove(tenant: Tenant): void {
    this.#all.delete(tenant);
    this.#waiting.delete(tenant);
    if (this.#all.size > 0) return;
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  /** From now on the connection waits for its client, at most for this time. */
  waits(tenant: Tenant, patienceMs: number): void {
    const since = this.#clock.monotonic();
    this.#waiting.delete(tenant);
    this.#waiting.set(tenant, { since, until: since + patienceMs });
  }

  /** From now on the client waits. */
  isAwaited(tenant: Tenant): void {
    this.#waiting.delete(tenant);
  }

  /** Counts bytes that a connection keeps, or less than 0 for those that it no longer keeps. */
  hold(bytes: number): void {
    this.#bytes += bytes;
    if (bytes > 0 && this.#bytes > mostBytes) this.#endSlow();
  }

  /** Prefers clients that are silent or do not read their answers, then those that send many requests at once. */
  #leastMissed(): Worker | undefined {
    const [[silent, wait] = []] = this.#waiting;
    const isSlow = wait !== undefined && wait.since <= this.#clock.monotonic() - slowMs;
    const [oldest] = this.#all;
    return (isSlow ? silent : this.#turns.oldestPipelined) ?? silent ?? oldest;
  }

  #endSlow(): void {
    const before = this.#clock.monotonic() - slowMs;
    for (const [tenant, { since }] of this.#waiting) {
      if (since > before || this.#bytes <= mostBytes) return;
      if (tenant.bytes > 0) tenant.destroy();
    }
  }

  #endOverdue(): void {
    const now = this.#clock.monotonic();
    for (const [tenant, { until }] of this.#waiting) if (until <= now) tenant.destroy();
    this.#sweep =
      this.#all.size === 0 ? undefined : this.#clock.setTimeout(() => this.#endOverdue(), sweepMs);
  }
}
