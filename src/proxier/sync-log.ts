import type { Backend } from '../backends/backend.ts';
import type { SyncActivity, SyncRecord } from '../inspect/family-view.ts';
import { type ConcernedService, type Journalist, longer, SERVICES_PER_ENTRY } from '../inspect/journal.ts';
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
  /** Repairs that are in the journal. */
  #notedRepairs = 0;
  isSyncing = false;
  syncs = 0;
  lastSync: SyncRecord | undefined;
  failures = 0;
  lastFailure: SyncActivity['lastFailure'];

  constructor(family: Family, backend: Pick<Backend, 'repairs'>, journal: Journalist) {
    this.#family = family;
    this.#backend = backend;
    this.#journal = journal;
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

  succeeded(record: SyncRecord, { delta, waitMs }: Programmed): void {
    this.isSyncing = false;
    this.syncs++;
    this.lastSync = record;
    this.#noteRepairs();
    const { finishedAt, durationMs, kind, changed: servicePorts } = record;
    this.#journal.note({
      event: 'Sync',
      family: this.#family,
      services: firstServices(delta, finishedAt),
      serviceCount: delta.changed.size,
      sync: { kind, durationMs, servicePorts, waitMs, latencyMs: longestLatency(delta, finishedAt) },
    });
  }

  failed(at: number, error: unknown): void {
    const message = messageOf(error);
    this.isSyncing = false;
    this.failures++;
    this.lastFailure = { at, message };
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
