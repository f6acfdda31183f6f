import type { ServicePlan } from '../plan/service-plan.ts';
import type { FastPathStatus, SyncRequest } from './backend.ts';
import type { ForeignChange } from './repairs.ts';

/** What is to be in the kernel. */
export interface Wanted extends Omit<SyncRequest, 'changed'> {
  /** Addresses on the node's interfaces, as they were last listed; empty where the mode does not ask for them. */
  readonly addresses: readonly string[];
}

/** The same, with the keys of plans that were added, changed or removed since the last sync that succeeded. */
export interface WantedChanges extends Wanted {
  readonly changed: ReadonlySet<string>;
}

/** The result of a write. */
export interface Written<Belief> {
  /** What the kernel holds from now on; undefined when that is not known well enough for a partial sync. */
  readonly belief: Belief | undefined;
  /** Service ports, of those that were written, that are not (fully) programmed. */
  readonly failures: ReadonlyMap<string, Error>;
  /** Why the engine is to sync everything again after a while; absent when nothing is left to do. */
  readonly retry?: string;
}

/** One full sync: attempts to write everything, until one succeeds or nothing helps. */
export interface FullWrite<Belief> {
  /** Reads what the kernel holds and writes all plans but those left out. */
  attempt(leftOut: ReadonlyMap<string, Error>): Promise<Written<Belief>>;
  /** What to do after an attempt that failed with this error. */
  remedy(error: unknown, leftOut: ReadonlyMap<string, Error>): Promise<Remedy>;
}

/**
 * Service ports to leave out, and why; `again`: the cause may pass by itself; `differently`: the next attempt avoids the
 * cause; undefined: nothing helps, the sync fails.
 */
export type Remedy = ReadonlyMap<string, Error> | 'again' | 'differently' | undefined;

/** What a driver can ask of its engine. */
export interface EngineSignals<Belief> {
  /** Reports that another program changed what the driver wrote. The engine repairs it, at once or after a pause. */
  changed(change: ForeignChange): void;
  /** Requests a sync of everything, as soon as possible. */
  requestFullSync(): void;
  /** Runs work while no sync does. The work may update the belief it gets, which is undefined when nothing is known. */
  exclusively(work: (belief: Belief | undefined) => Promise<void>): Promise<void>;
}

/** What one mode does in one family. The engine decides when; calls of write methods never overlap. */
export interface Driver<Belief> {
  /** What the driver writes, for logs: `table kube-proxy`. */
  readonly subject: string;
  /** See Backend. */
  readonly skipsHourlySync?: boolean;
  readonly fastPath?: FastPathStatus | undefined;
  /** Milliseconds from one full sync to the next, where no watch reports changes by other programs. */
  readonly fullSyncPeriodMs?: number | undefined;
  /**
   * Writes what changed. Resolves to undefined when everything has to be written instead. `belief` is valid again only
   * when this resolves to it.
   */
  writeChanges(belief: Belief, wanted: WantedChanges): Promise<Written<Belief> | undefined>;
  /** Repairs what is suspect, then does what `writeChanges` does. Without this method, everything is written. */
  writeRepair?(
    belief: Belief,
    suspects: ReadonlySet<string>,
    wanted: WantedChanges,
  ): Promise<Written<Belief> | undefined>;
  /** Begins a full sync; touches nothing yet. */
  writeAll(wanted: Wanted): FullWrite<Belief>;
  /**
   * Prepares one plan by itself and writes nothing. Throws if a write with this plan fails before the kernel sees it.
   * The engine calls it after a failed write, to find the service ports at fault.
   */
  prepareAlone(plan: ServicePlan): void;
  /** Whether a full sync may succeed where a partial one failed with this error. */
  isRefusal(error: unknown): boolean;
  /** Whether to try again, after a while, a service port that failed with this error. Default: when it changes. */
  isTemporary?(error: Error): boolean;
  /** Begins to watch what the driver writes. Called once, before the first write. */
  watch?(signals: EngineSignals<Belief>): readonly Closable[];
  /** See Backend. */
  withoutFastPath?(work: () => Promise<void>): Promise<void>;
  /** Called when a repair begins, before the sync that makes it. */
  repairing?(): void;
  /** Releases what the driver holds; everything stays in the kernel. */
  close?(): void | Promise<void>;
}

export interface Closable {
  close(): void | Promise<void>;
}
