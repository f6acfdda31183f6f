/** Deletions remembered, so that a late copy of an older event does not bring an object back. */
const maxTombstones = 4096;

interface Entry<T> {
  object: T;
  /** The listing in which it was last seen. */
  listing: number;
}

/** What becomes of an offered object: stored (over `previous`, if any), or left alone as nothing new. */
export type Stored<T> =
  | { readonly stored: true; readonly previous: T | undefined }
  | { readonly stored: false };

/**
 * The last known state of one resource. Versions decide between an event and what is known, object by object;
 * a listing decides about everything it does not mention.
 */
export class ObjectCache<T extends { readonly resourceVersion: string }> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #tombstones = new Map<string, string>();
  #listing = 0;
  /** The version the last complete listing was made at: it knew every object up to then. */
  #listedAt: string | undefined;

  /** Starts a listing: what it does not name until `endListing` is gone. A listing that fails is simply begun again. */
  beginListing(): void {
    this.#listing++;
    this.#listedAt = undefined;
    this.#tombstones.clear();
  }

  /** Ends a listing made at `version`; returns the last known form of what it did not name, now forgotten. */
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
    // The first mention in a listing counts even if it looks older: the server may have been restored.
    const stale = entry.listing === this.#listing && order !== undefined && order < 0;
    entry.listing = this.#listing;
    if (stale || (order === 0 && known !== '')) return { stored: false };
    const previous = entry.object;
    entry.object = object;
    return { stored: true, previous };
  }

  /** Notes that an object exists although its new form cannot be used: its last usable one stays. */
  keep(key: string): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) entry.listing = this.#listing;
  }

  /** Takes out an object that was deleted at `version`; undefined when it is not known or the event is late. */
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

  /** Whether an unknown object is known to be deleted since `version`. */
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
 * Orders two resource versions: negative when `a` is older. They are decimal numbers of any length; anything
 * else (an aggregated API server may use its own) has no order, and undefined is returned unless they are equal.
 */
export function compareVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!isNumber(a) || !isNumber(b)) return undefined;
  return a.length - b.length || (a < b ? -1 : 1);
}

function isNumber(version: string): boolean {
  return /^[1-9][0-9]*$/.test(version);
}
