import type { Intern } from '../lib/intern.ts';
import type { TimeSlice } from '../lib/time-slice.ts';
import type { ResourceName, Resources } from '../model/objects.ts';
import type { Logger } from '../obs/log.ts';
import { decoders } from './decode.ts';
import { objectName } from './decode-object.ts';
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

interface Aside {
  readonly message: string;
  /** The listing in which it was last seen. */
  readonly listing: number;
}

/**
 * Turns raw objects into deliveries: decodes them, drops what is not news, and sets aside those of a wrong shape,
 * so that one odd object does not stop the others. The last usable form of such an object stays in force.
 */
export class ObjectIntake<R extends ResourceName> {
  readonly #options: ObjectIntakeOptions<R>;
  readonly #cache = new ObjectCache<Resources[R]>();
  /** What was said about objects set aside, so that it is said once. */
  readonly #aside = new Map<string, Aside>();
  #listing = 0;
  #synced = false;

  constructor(options: ObjectIntakeOptions<R>) {
    this.#options = options;
  }

  beginListing(): void {
    this.#listing++;
    this.#cache.beginListing();
  }

  /** Delivers the removal of everything the listing, made at `version`, did not name. */
  async endListing(version: string, timeSlice: TimeSlice): Promise<void> {
    for (const [key, { listing }] of this.#aside) {
      if (listing !== this.#listing) this.#aside.delete(key);
    }
    for (const object of this.#cache.endListing(version)) {
      this.#options.sink.remove(object);
      if (timeSlice.isSpent) await timeSlice.yield();
    }
    if (this.#synced) return;
    this.#synced = true;
    this.#options.sink.synced();
  }

  upsert(raw: unknown): void {
    const key = objectName(raw);
    const object = this.#decode(key, raw);
    if (object === undefined) {
      this.#cache.keep(key);
      return;
    }
    const result = this.#cache.put(key, object);
    if (result.stored) this.#options.sink.upsert(object, result.previous);
  }

  remove(raw: unknown, version: string): void {
    const key = objectName(raw);
    this.#aside.delete(key);
    const last = this.#cache.delete(key, version);
    if (last !== undefined) this.#options.sink.remove(last);
  }

  #decode(key: string, raw: unknown): Resources[R] | undefined {
    const { resource, intern } = this.#options;
    try {
      const object = decoders[resource](raw, intern);
      this.#aside.delete(key);
      return object;
    } catch (error) {
      if (!(error instanceof ObjectError)) throw error;
      this.#setAside(key, error);
      return undefined;
    }
  }

  #setAside(key: string, error: ObjectError): void {
    const { resource, logger } = this.#options;
    const known = this.#aside.get(key)?.message;
    this.#aside.set(key, { message: error.message, listing: this.#listing });
    if (known === error.message) return;
    logger.error(error, 'Object set aside: it does not have the shape of its kind', {
      resource,
      object: key,
    });
  }
}
