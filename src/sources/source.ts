import type { ResourceName, Resources } from '../model/objects.ts';

/** Receives what a source knows. Calls are made in order and never overlap. */
export interface ObjectHandler {
  /** `previous` is the last object delivered under the same key; equal to `object` on a resync. */
  upsert<R extends ResourceName>(resource: R, object: Resources[R], previous: Resources[R] | undefined): void;
  /** Carries the last known object, also when the deletion itself was missed. */
  remove<R extends ResourceName>(resource: R, object: Resources[R]): void;
  /** Every object of the first complete list has been delivered. Called once per resource. */
  synced(resource: ResourceName): void;
}

/** Where objects come from: an API server or manifests. */
export interface ObjectSource {
  /** Begins delivering; the source retries for ever on its own and keeps what it delivered while it is cut off. */
  start(resources: readonly ResourceName[], handler: ObjectHandler): void;
  stop(): Promise<void>;
}
