import type { Intern } from '../lib/intern.ts';
import type { TimeSlice } from '../lib/time-slice.ts';
import type { ResourceName, Resources } from '../model/objects.ts';
import type { Logger } from '../obs/log.ts';
import type { ReceivedObject } from './encoding.ts';
import { ObjectError } from './fields.ts';
import { ObjectCache } from './object-cache.ts';

/** Receives the objects of one resource. */
export interface ObjectSink<T> {
  upsert(object: T, previous: T | undefined): void;
  remove(object: T): void;
  /** The first list is complete. */
  synced(): void;
}

export interface ObjectIntakeOptions<R extends ResourceName> {
  readonly resource: R;
  readonly sink: ObjectSink<Resources[R]>;
  readonly intern: Intern;
  readonly logger: Logger;
}

interface IgnoredObject {
  readonly message: string;
  /** The listing that contained it last. */
  readonly listing: number;
}

/**
 * Decodes received objects and delivers those that are new or changed. An object that cannot be decoded is ignored and
 * logged; its last usable form stays in force, and other objects are not affected.
 */
export class ObjectIntake<R extends ResourceName> {
  readonly #options: ObjectIntakeOptions<R>;
  readonly #cache = new ObjectCache<Resources[R]>();
  /** Objects that cannot be decoded, and the error that was logged, so that it is logged once. */
  readonly #ignored = new Map<string, IgnoredObject>();
  #listing = 0;
  #synced = false;

  constructor(options: ObjectIntakeOptions<R>) {
    this.#options = options;
  }

  beginListing(): void {
    this.#listing++;
    this.#cache.beginListing();
  }

  /** Delivers the removal of every object that the listing, made at `version`, did not contain. */
  async endListing(version: string, timeSlice: TimeSlice): Promise<void> {
    for (const [key, { listing }] of this.#ignored) {
      if (listing !== this.#listing) this.#ignored.delete(key);
    }
    for (const object of this.#cache.endListing(version)) {
      this.#options.sink.remove(object);
      if (timeSlice.isSpent) await timeSlice.yield();
    }
    if (this.#synced) return;
    this.#synced = true;
    this.#options.sink.synced();
  }

  upsert(received: ReceivedObject): void {
    const object = this.#decode(received);
    if (object === undefined) return;
    const key = keyOf(object);
    this.#ignored.delete(key);
    const result = this.#cache.put(key, object);
    if (result.stored) this.#options.sink.upsert(object, result.previous);
  }

  remove(received: ReceivedObject): void {
    const key = received.name;
    this.#ignored.delete(key);
    const last = this.#cache.delete(key, received.version);
    if (last !== undefined) this.#options.sink.remove(last);
  }

  #decode(received: ReceivedObject): Resources[R] | undefined {
    const { resource, intern } = this.#options;
    try {
      return received.decode(resource, intern);
    } catch (error) {
      if (!(error instanceof ObjectError)) throw error;
      this.#ignore(error.object, error);
      this.#cache.keep(error.object);
      return undefined;
    }
  }

  #ignore(key: string, error: ObjectError): void {
    const { resource, logger } = this.#options;
    const known = this.#ignored.get(key)?.message;
    this.#ignored.set(key, { message: error.message, listing: this.#listing });
    if (known === error.message) return;
    logger.error(error, 'Object ignored: a field is missing or has the wrong type', {
      resource,
      object: key,
    });
  }
}

/** As `ReceivedObject.name`. */
function keyOf(object: { readonly namespace?: string; readonly name: string }): string {
  return object.namespace ? `${object.namespace}/${object.name}` : object.name;
}
