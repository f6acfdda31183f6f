import type { ResourceName, Resources } from '../model/objects.ts';
import type { SourceStatus } from '../model/source-status.ts';

/** Receives the objects of a source. Calls come in order and never overlap. */
export interface ObjectHandler {
  /** `previous` is the last object that was delivered under the same key; equal to `object` on a resync. */
  upsert<R extends ResourceName>(resource: R, object: Resources[R], previous: Resources[R] | undefined): void;
  /** `object` is the last known one. */
  remove<R extends ResourceName>(resource: R, object: Resources[R]): void;
  /** Every object of the first complete list has been delivered. Called once per resource. */
  synced(resource: ResourceName): void;
}

/** Where objects come from: an API server or manifests. */
export interface ObjectSource {
  /** Starts delivering. The source retries by itself and removes no object while it is disconnected. */
  start(resources: readonly ResourceName[], handler: ObjectHandler): void;
  stop(): Promise<void>;
  /** How current the objects are. */
  status(): SourceStatus;
}
