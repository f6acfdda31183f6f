import type { Family } from '../model/ip.ts';
import type { PlannedPort } from '../plan/plan.ts';

/** One sync that came to an end. Times are milliseconds since the Unix epoch. */
export interface SyncRecord {
  readonly finishedAt: number;
  readonly durationMs: number;
  readonly kind: 'full' | 'partial';
  /** Service ports whose plan changed. */
  readonly changed: number;
}

/** What the sync loop of one family has been doing. Times are milliseconds since the Unix epoch. */
export interface SyncActivity {
  readonly isSyncing: boolean;
  /** Syncs that succeeded, and the last of them. */
  readonly syncs: number;
  readonly lastSync: SyncRecord | undefined;
  /** Syncs that failed, and the last of them. */
  readonly failures: number;
  readonly lastFailure: { readonly at: number; readonly message: string } | undefined;
  /** Objects in the kernel that were put right because another program had changed them. */
  readonly repairs: number;
  readonly lastRepair: number | undefined;
}

/** What a running proxy can tell about one family. Everything in it is live and moves with the next sync. */
export interface FamilyView {
  readonly family: Family;
  /** Services and EndpointSlices have been listed. */
  readonly isInitialised: boolean;
  readonly plans: ReadonlyMap<string, PlannedPort>;
  readonly serviceCIDRs: readonly string[];
  readonly totalEndpoints: number;
  /** Services and slices that wait for the next sync. */
  readonly pending: { readonly services: number; readonly slices: number };
  readonly activity: SyncActivity;
}
