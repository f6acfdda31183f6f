import type { FastPathStatus, RepairRecord, SyncRequest } from '../backends/backend.ts';
import type { Family } from '../model/ip.ts';
import type { Placements } from '../model/placement.ts';
import type { ServicePort } from '../model/service-port.ts';
import type { PlannedPort } from '../plan/plan.ts';

/** One completed sync. Times are milliseconds since the Unix epoch. */
export interface SyncRecord {
  readonly finishedAt: number;
  readonly durationMs: number;
  readonly kind: 'full' | 'partial';
  /** Service ports whose plan changed. */
  readonly changed: number;
}

/** The recent activity of one family's sync loop. Times are milliseconds since the Unix epoch. */
export interface SyncActivity {
  readonly isSyncing: boolean;
  /** Syncs that succeeded, and the last of them. */
  readonly syncs: number;
  readonly lastSync: SyncRecord | undefined;
  /** Syncs that failed, and the last of them. */
  readonly failures: number;
  readonly lastFailure: { readonly at: number; readonly message: string } | undefined;
  /** Repairs of what other programs had changed, and the last of them. */
  readonly repairs: number;
  readonly lastRepair: RepairRecord['last'] | undefined;
}

/** The state of one family in a running proxy. All of it is live and changes with the next sync. */
export interface FamilyView {
  readonly family: Family;
  /** Services and EndpointSlices have been listed. */
  readonly isInitialised: boolean;
  readonly plans: ReadonlyMap<string, PlannedPort>;
  /** Where the endpoints of a service port run; `known` when that earlier answer still holds. */
  placements(port: ServicePort, known?: Placements): Placements;
  readonly serviceCIDRs: readonly string[];
  readonly totalEndpoints: number;
  /** See SyncRequest; undefined when that is not known, as without a running proxy. */
  readonly departed?: SyncRequest['departed'];
  /** Changed Services and slices that wait for the next sync. */
  readonly pending: { readonly services: number; readonly slices: number };
  readonly activity: SyncActivity;
  /** See Backend. */
  readonly fastPath?: FastPathStatus | undefined;
}
