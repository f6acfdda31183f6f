import { type ApiError, apiErrorOf } from './api-error.ts';
import { type Fields, isFields, printValue } from './fields.ts';
import { StreamError } from './json-scanner.ts';

/** One thing a watch says. */
export type WatchEvent =
  | { readonly type: 'upsert' | 'delete'; readonly object: Fields; readonly version: string }
  /** Everything up to `version` has been sent; `initialEventsEnd` closes the list that began a streaming watch. */
  | { readonly type: 'bookmark'; readonly version: string; readonly initialEventsEnd: boolean }
  | { readonly type: 'error'; readonly error: ApiError };

/** Reads one frame of a watch stream. A frame of no known form fails with `StreamError`. */
export function watchEventOf(frame: unknown): WatchEvent {
  const fields = isFields(frame) ? frame : {};
  const { type, object } = fields;
  if (!isFields(object)) throw new StreamError(`a watch event of type ${printValue(type)} without an object`);
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { type: 'upsert', object, version: versionOf(object) };
    case 'DELETED':
      return { type: 'delete', object, version: versionOf(object) };
    case 'BOOKMARK':
      return bookmarkOf(object);
    case 'ERROR':
      return { type: 'error', error: apiErrorOf(0, object) };
    default:
      throw new StreamError(`a watch event of the unknown type ${printValue(type)}`);
  }
}

function bookmarkOf(object: Fields): WatchEvent {
  const version = versionOf(object);
  if (version === '') throw new StreamError('a bookmark without a resourceVersion');
  return { type: 'bookmark', version, initialEventsEnd: endsInitialEvents(object) };
}

/** Empty when the object does not say: whether the object is usable is not decided here. */
function versionOf(object: Fields): string {
  const version = metadataOf(object).resourceVersion;
  return typeof version === 'string' ? version : '';
}

function endsInitialEvents(object: Fields): boolean {
  const annotations = metadataOf(object).annotations;
  return isFields(annotations) && annotations['k8s.io/initial-events-end'] === 'true';
}

function metadataOf(object: Fields): Fields {
  return isFields(object.metadata) ? object.metadata : {};
}
