import type { SyncActivity, SyncRecord } from '../inspect/family-view.ts';
import { messageOf } from '../lib/thrown.ts';

/** Counts the syncs, failures and repairs of one family, and remembers the last of each. */
export class SyncLog implements SyncActivity {
  isSyncing = false;
  syncs = 0;
  lastSync: SyncRecord | undefined;
  failures = 0;
  lastFailure: SyncActivity['lastFailure'];
  repairs = 0;
  lastRepair: number | undefined;

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

  repaired(at: number, objects: number): void {
    this.repairs += objects;
    this.lastRepair = at;
  }
}
