import type { Backend } from '../backends/backend.ts';
import type { SyncActivity, SyncRecord } from '../inspect/family-view.ts';
import { messageOf } from '../lib/thrown.ts';

/** Counts the syncs and failures of one family, and remembers the last of each. The backend counts repairs. */
export class SyncLog implements SyncActivity {
  readonly #backend: Pick<Backend, 'repairs'>;
  isSyncing = false;
  syncs = 0;
  lastSync: SyncRecord | undefined;
  failures = 0;
  lastFailure: SyncActivity['lastFailure'];

  constructor(backend: Pick<Backend, 'repairs'>) {
    this.#backend = backend;
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

  succeeded(record: SyncRecord): void {
    this.isSyncing = false;
    this.syncs++;
    this.lastSync = record;
  }

  failed(at: number, error: unknown): void {
    this.isSyncing = false;
    this.failures++;
    this.lastFailure = { at, message: messageOf(error) };
  }
}
