/** Deletions to remember, so that a late older event does not bring an object back. */
const maxTombstones = 4096;

interface Entry<T> {
  object: T;
  /** The listing in which it was last seen. */
  listing: number;
}

/** Whether an offered object was stored, and what it replaced; an older or equal version is not stored. */
export type Stored<T> =
  | { readonly stored: true; readonly previous: T | undefined }
  | { readonly stored: false };

/**
 * The last known objects of one resource. For each object, the newer version wins; a listing removes the objects that
 * it does not contain.
 */
export class ObjectCache<T extends { readonly resourceVersion: string }> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #tombstones = new Map<string, string>();
  #listing = 0;
  /** Version of the last complete listing, which contained every object of that time. */
  #listedAt: string | undefined;

  /** Starts a listing: `endListing` removes what was not `put` since. After a failed listing, begin again. */
  beginListing(): void {
    this.#listing++;
    this.#listedAt = undefined;
    this.#tombstones.clear();
  }

  /** Ends a listing made at `version`; removes and returns the objects that it did not contain. */
  endListing(version: string): T[] {
    this.#listedAt = version;
    const gone: T[] = [];
    for (const [key, entry] of this.#entries) {
      if (entry.listing === this.#listing) continue;
      this.#entries.delete(key);
      gone.push(entry.object);
    }
    return gone;
  }

  /** Offers an object, from a listing or an event. */
  put(key: string, object: T): Stored<T> {
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      if (this.#isGone(key, object.resourceVersion)) return { stored: false };
      this.#tombstones.delete(key);
      this.#entries.set(key, { object, listing: this.#listing });
      return { stored: true, previous: undefined };
    }
    const known = entry.object.resourceVersion;
    const order = compareVersions(object.resourceVersion, known);
    // The first one in a listing counts even if it is older: the server may have been restored from a backup.
    const stale = entry.listing === this.#listing && order !== undefined && order < 0;
    entry.listing = this.#listing;
    if (stale || (order === 0 && known !== '')) return { stored: false };
    const previous = entry.object;
    entry.object = object;
    return { stored: true, previous };
  }

  /** Notes that the current listing contains an object although it cannot be decoded: its last usable form stays. */
  keep(key: string): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) entry.listing = this.#listing;
  }

  /** Removes and returns an object deleted at `version`; undefined when it is unknown or newer. */
  delete(key: string, version: string): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const order = compareVersions(version, entry.object.resourceVersion);
    if (order !== undefined && order < 0 && entry.listing === this.#listing) return undefined;
    this.#entries.delete(key);
    this.#bury(key, version);
    return entry.object;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Whether an object that is not in the cache was deleted after `version`. */
  #isGone(key: string, version: string): boolean {
    const deletedAt = this.#tombstones.get(key) ?? this.#listedAt;
    if (deletedAt === undefined) return false;
    const order = compareVersions(version, deletedAt);
    return order !== undefined && order <= 0;
  }

  #bury(key: string, version: string): void {
    this.#tombstones.delete(key);
    this.#tombstones.set(key, version);
    if (this.#tombstones.size <= maxTombstones) return;
    const [oldest] = this.#tombstones.keys();
    if (oldest !== undefined) this.#tombstones.delete(oldest);
  }
}

/**
 * Compares two resource versions: negative when `a` is older. They are decimal numbers of any length. Other texts
 * (an aggregated API server may use its own) have no order: undefined unless they are equal.
 */
export function compareVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!isNumber(a) || !isNumber(b)) return undefined;
  return a.length - b.length || (a < b ? -1 : 1);
}

function isNumber(version: string): boolean {
  return /^[1-9][0-9]*$/.test(version);
}
