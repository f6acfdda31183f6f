import type { Encoding } from './encoding.ts';
import type { Location } from './resources.ts';
import type { Selector } from './selectors.ts';
import { ApiFault } from './status.ts';
import type { Store, StoredObject } from './store.ts';

export interface ListOptions {
  readonly location: Location;
  readonly matches: Selector;
  readonly query: URLSearchParams;
}

/** The remaining objects of a list that a client reads in pages, from the time of its first page. */
interface Snapshot {
  readonly version: number;
  readonly objects: readonly StoredObject[];
}

const maxSnapshots = 100;

/** Serves lists, in pages if the request has a limit. */
export class Lister {
  readonly #store: Store;
  readonly #snapshots = new Map<string, Snapshot>();
  #tokens = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  list({ location, matches, query }: ListOptions, encoding: Encoding): Buffer {
    const snapshot = this.#snapshot(location, matches, query.get('continue') ?? '');
    const limit = Number(query.get('limit') ?? '0') || Number.POSITIVE_INFINITY;
    const page = snapshot.objects.slice(0, limit);
    const rest = snapshot.objects.slice(page.length);
    const more =
      rest.length === 0 ? {} : { continue: this.#remember(snapshot, rest), remainingItemCount: rest.length };
    const metadata = { resourceVersion: String(snapshot.version), ...more };
    return encoding.list(location.resource, metadata, page);
  }

  #snapshot(location: Location, matches: Selector, token: string): Snapshot {
    if (token === '') {
      const objects = this.#store.list(location.resource).filter((object) => matches(object.raw));
      return { version: this.#store.version, objects };
    }
    const snapshot = this.#snapshots.get(token);
    if (snapshot === undefined || snapshot.version < this.#store.compactedAt) {
      throw new ApiFault(
        410,
        'Expired',
        'The provided continue parameter is too old to display a consistent list result.',
      );
    }
    return snapshot;
  }

  #remember({ version }: Snapshot, objects: readonly StoredObject[]): string {
    const token = Buffer.from(`${version}/${++this.#tokens}`).toString('base64url');
    this.#snapshots.set(token, { version, objects });
    const [oldest] = this.#snapshots.keys();
    if (this.#snapshots.size > maxSnapshots && oldest !== undefined) this.#snapshots.delete(oldest);
    return token;
  }
}
