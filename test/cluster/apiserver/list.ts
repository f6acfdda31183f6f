import { type Location, resources } from './resources.ts';
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
const itemsPerPiece = 200;

/** Serves lists, in pages if the request has a limit. */
export class Lister {
  readonly #store: Store;
  readonly #snapshots = new Map<string, Snapshot>();
  #tokens = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The text of a list, in pieces. */
  list({ location, matches, query }: ListOptions): string[] {
    const snapshot = this.#snapshot(location, matches, query.get('continue') ?? '');
    const limit = Number(query.get('limit') ?? '0') || Number.POSITIVE_INFINITY;
    const page = snapshot.objects.slice(0, limit);
    const rest = snapshot.objects.slice(page.length);
    const { kind, apiVersion } = resources[location.resource];
    const more =
      rest.length === 0 ? {} : { continue: this.#remember(snapshot, rest), remainingItemCount: rest.length };
    const metadata = JSON.stringify({ resourceVersion: String(snapshot.version), ...more });
    return [
      `{"kind":"${kind}List","apiVersion":"${apiVersion}","metadata":${metadata},"items":[`,
      ...itemPieces(page),
      ']}\n',
    ];
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

function* itemPieces(objects: readonly StoredObject[]): Generator<string> {
  for (let i = 0; i < objects.length; i += itemsPerPiece) {
    const texts = objects.slice(i, i + itemsPerPiece).map((object) => object.json);
    yield (i === 0 ? '' : ',') + texts.join(',');
  }
}
