import type { FastPathSettings } from '../model/fast-path.ts';
import type { Family } from '../model/ip.ts';
import type { ServicePlan } from '../plan/service-plan.ts';

/** What a sync writes. */
export interface SyncRequest {
  /** Every plan of this family, by service port key. */
  readonly plans: ReadonlyMap<string, ServicePlan>;
  /**
   * Keys whose plan was added, changed or removed since the last sync that succeeded; 'all' after a start, a
   * failure, or a change that touches everything. What the backend itself suspects to be damaged comes on top.
   */
  readonly changed: ReadonlySet<string> | 'all';
  /** Canonical ServiceCIDRs of this family. */
  readonly serviceCIDRs: readonly string[];
  /** Endpoints known over all service ports, usable or not. */
  readonly totalEndpoints: number;
  /**
   * TCP endpoints that are gone, by `ip:port`: their connections get a reset. Modes without `resetsDeparted` ignore it.
   * Undefined when that is not known.
   */
  readonly departed?: ReadonlyMap<string, { readonly ip: string; readonly port: number }> | undefined;
}

/** Service ports that the kernel refused while the rest was programmed. */
export interface SyncResult {
  readonly refused: readonly { readonly key: string; readonly error: Error }[];
}

/** Rules are not what was written, because of another program. Times are milliseconds since the epoch. */
export interface RulesWrong {
  /** When the first of the changes was noticed. */
  readonly since: number;
  /** When the repair begins; absent while one is under way. */
  readonly dueAt?: number;
  /** The program that made the latest change, by name and process id. */
  readonly by: string;
  /** That change: `rule deleted: 3`. */
  readonly changes: string;
}

/** The repairs of a backend so far. */
export interface RepairRecord {
  readonly count: number;
  /** How long rules were known to be wrong, in milliseconds. */
  readonly wrongMs: number;
  /** The last repair: when it ended, and the change that caused it, as in RulesWrong. */
  readonly last?: { readonly at: number; readonly by: string; readonly changes: string };
}

/** What a backend still has to do, as data. Times are milliseconds since the epoch. */
export interface Condition {
  /** A sync was asked for, or failed, at this time, and none that began later has succeeded. */
  readonly syncOwedSince?: number;
  /** What other programs changed, while that is not repaired: the repair waits, is under way or has failed. */
  readonly wrong?: RulesWrong;
  /** Another program changes rules again and again. Between its changes and the repairs, rules may be right. */
  readonly fight?: { readonly since: number; readonly by: string };
  /** A full sync to come, because the last one left something to do. */
  readonly retry?: { readonly dueAt: number; readonly reason: string };
  /** The error of the last sync that failed. A later success does not clear it. */
  readonly lastError?: { readonly at: number; readonly message: string };
}

/** A network device that does not take part in the fast path, and why. */
export interface LeftOutDevice {
  readonly device: string;
  readonly reason: string;
}

/** The fast path of connections that were open for a while: later packets skip the rules. */
export interface FastPathStatus extends FastPathSettings {
  readonly isInUse: boolean;
  /** Why it is not in use. */
  readonly reason?: string;
  /** The kernel counts packets of new connections: without that, none gets to the fast path. */
  readonly isCounting: boolean;
  readonly devices: readonly string[];
  readonly leftOut: readonly LeftOutDevice[];
}

/**
 * One mode in one family. `sync` throws when nothing, or not everything, could be written for a reason that no
 * single service port explains; the caller then keeps its delta and tries again with `changed: 'all'`.
 */
export interface Backend {
  readonly family: Family;
  /** True: the proxier asks for no full sync every hour, since one costs too much. */
  readonly skipsHourlySync?: boolean;
  /**
   * The backend refuses packets to ServiceCIDR addresses without a service, so it needs a sync when the ranges
   * change.
   */
  readonly usesServiceCIDRs?: boolean;
  /**
   * The `ip:port`s that answer UDP flows of a service port, in a set that follows every sync; undefined when the
   * endpoints answer, `none` when no flow is rewritten.
   */
  readonly flows?: { answerers(key: string): ReadonlySet<string> } | 'none' | undefined;
  readonly condition: Condition;
  readonly repairs: RepairRecord;
  /** Undefined when it is off, before the first sync, and in modes without one. */
  readonly fastPath?: FastPathStatus | undefined;
  sync(request: SyncRequest): Promise<SyncResult>;
  /** Does the work while no connection is on the fast path. Absent in modes without one. */
  withoutFastPath?(work: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}
