import type { Backend } from '../backends/backend.ts';
import type { SyncActivity, SyncRecord } from '../inspect/family-view.ts';
import { type ConcernedService, type Journalist, longer, SERVICES_PER_ENTRY } from '../inspect/journal.ts';
import { type Clock, wallTimeOf } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Family } from '../model/ip.ts';
import type { Delta } from '../state/ledger.ts';

/** What a sync that succeeded has programmed. */
export interface Programmed {
  readonly delta: Delta;
  /** From the arrival of the first change; undefined when no change asked for the sync. */
  readonly waitMs: number | undefined;
}

/**
 * Counts the syncs and failures of one family, remembers the last of each, and writes them and the repairs to the
 * journal. The backend counts repairs.
 */
export class SyncLog implements SyncActivity {
  readonly #family: Family;
  readonly #backend: Pick<Backend, 'repairs'>;
  readonly #journal: Journalist;
  readonly #clock: Clock;
  /** The last sync that succeeded, and the last that failed. Both times are monotonic. */
  #success: { readonly at: number; readonly record: Omit<SyncRecord, 'finishedAt'> } | undefined;
  #failure: { readonly at: number; readonly message: string } | undefined;
  /** Repairs that are in the journal. */
  #notedRepairs = 0;
  isSyncing = false;
  /** Whether the last sync that ended has failed. */
  isFailing = false;
  syncs = 0;
  failures = 0;

  constructor(family: Family, backend: Pick<Backend, 'repairs'>, journal: Journalist, clock: Clock) {
    this.#family = family;
    this.#backend = backend;
    this.#journal = journal;
    this.#clock = clock;
  }

  get lastSync(): SyncRecord | undefined {
    if (!this.#success) return undefined;
    const { at, record } = this.#success;
    return { ...record, finishedAt: wallTimeOf(this.#clock, at) };
  }

  get lastFailure(): SyncActivity['lastFailure'] {
    if (!this.#failure) return undefined;
    const { at, message } = this.#failure;
    return { at: wallTimeOf(this.#clock, at), message };
  }

  get repairs(): number {
    return this.#backend.repairs.count;
  }

  get lastRepair(): SyncActivity['lastRepair'] {
    return this.#backend.repairs.last;
  }

  begin(): void {
    this.isSyncing = true;
  }

  succeeded(record: Omit<SyncRecord, 'finishedAt'>, { delta, waitMs }: Programmed): void {
    this.isSyncing = false;
    this.isFailing = false;
    this.syncs++;
    this.#success = { at: this.#clock.monotonic(), record };
    this.#noteRepairs();
    const { durationMs, kind, changed: servicePorts } = record;
    // The times of triggers are from other machines, so only the wall clock compares with them.
    const finishedAt = this.#clock.now();
    this.#journal.note({
      event: 'Sync',
      family: this.#family,
      services: firstServices(delta, finishedAt),
      serviceCount: delta.changed.size,
      sync: { kind, durationMs, servicePorts, waitMs, latencyMs: longestLatency(delta, finishedAt) },
    });
  }

  failed(error: unknown): void {
    const message = messageOf(error);
    this.isSyncing = false;
    this.isFailing = true;
    this.failures++;
    this.#failure = { at: this.#clock.monotonic(), message };
    this.#journal.note({ event: 'SyncFailed', family: this.#family, text: message });
  }

  #noteRepairs(): void {
    const { repairs, lastRepair } = this;
    if (repairs === this.#notedRepairs || !lastRepair) return;
    this.#notedRepairs = repairs;
    const text = `${lastRepair.by} had changed our rules (${lastRepair.changes})`;
    this.#journal.note({ event: 'Repair', family: this.#family, text });
  }
}

function firstServices({ changed, triggerTimes }: Delta, finishedAt: number): ConcernedService[] {
  const services: ConcernedService[] = [];
  for (const service of changed) {
    if (services.length === SERVICES_PER_ENTRY) break;
    services.push({ service, latencyMs: latencyOf(triggerTimes.get(service), finishedAt) });
  }
  return services;
}

function longestLatency({ triggerTimes }: Delta, finishedAt: number): number | undefined {
  let longest: number | undefined;
  for (const times of triggerTimes.values()) longest = longer(longest, latencyOf(times, finishedAt));
  return longest;
}

function latencyOf(times: readonly number[] | undefined, finishedAt: number): number | undefined {
  let longest: number | undefined;
  for (const time of times ?? []) longest = longer(longest, finishedAt - time);
  return longest;
}
