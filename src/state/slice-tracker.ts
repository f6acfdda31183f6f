import type { EndpointSliceObject } from '../model/objects.ts';
import type { Ledger } from './ledger.ts';
import type { SliceChange } from './service-record.ts';
import { problemOf, readSlice, type SliceContext, type SliceEntry, sameSlice } from './slice-entry.ts';
import { parseTriggerTime } from './trigger-time.ts';

/** The newest version of every slice of one family, and which of them wait to be applied. */
export class SliceTracker {
  readonly #context: SliceContext;
  readonly #startTime: number;
  readonly #ledger: Ledger;
  readonly #latest = new Map<string, SliceEntry>();
  /** For every slice with a pending change: the applied version, if any. */
  readonly #superseded = new Map<string, SliceEntry | undefined>();
  #pendingChanges = 0;
  #events = 0;

  constructor(context: SliceContext, startTime: number, ledger: Ledger) {
    this.#context = context;
    this.#startTime = startTime;
    this.#ledger = ledger;
  }

  get pendingChanges(): number {
    return this.#pendingChanges;
  }

  get events(): number {
    return this.#events;
  }

  /** Returns whether the slice changed: by any write, or by the removal of a known slice. */
  update(object: EndpointSliceObject, removed: boolean): boolean {
    const usable = this.#isUsable(object, removed);
    if (usable) this.#events++;
    const key = `${object.namespace}/${object.name}`;
    const previous = this.#latest.get(key);
    // A slice without its label no longer belongs to the Service.
    if (removed || !usable) return previous !== undefined && this.#remove(key, previous);
    if (previous && sameSlice(previous.object, object)) {
      // Its pods may have other names.
      previous.object = object;
      return false;
    }
    this.#supersede(key, previous);
    const entry = readSlice(object, previous, this.#context);
    this.#latest.set(key, entry);
    if (previous && serviceOf(previous) !== serviceOf(entry)) {
      this.#ledger.discardTriggerTimes(serviceOf(previous));
    }
    this.#recordTriggerTime(entry);
    return true;
  }

  get hasPending(): boolean {
    return this.#superseded.size > 0;
  }

  /** Takes up to `limit` pending changes, by `namespace/name` of the Service. */
  takeChanges(limit: number): ReadonlyMap<string, SliceChange> {
    const changes = new Map<string, SliceChange>();
    for (const [key, before] of takeFirst(this.#superseded, limit)) {
      const after = this.#latest.get(key);
      if (before) changeOf(changes, before).removed.push(before);
      if (after) changeOf(changes, after).added.push(after);
    }
    if (!this.hasPending) this.#pendingChanges = 0;
    return changes;
  }

  #isUsable(object: EndpointSliceObject, removed: boolean): boolean {
    if (object.addressType !== this.#context.family) return false;
    const { namespace, name, serviceName } = object;
    if (namespace !== '' && name !== '' && serviceName !== '') return true;
    const field = 'metadata.labels[kubernetes.io/service-name]';
    if (!removed) this.#context.onProblem(problemOf(object, field, serviceName, 'names no Service'));
    return false;
  }

  #remove(key: string, previous: SliceEntry): boolean {
    this.#supersede(key, previous);
    this.#latest.delete(key);
    this.#ledger.discardTriggerTimes(serviceOf(previous));
    return true;
  }

  #supersede(key: string, previous: SliceEntry | undefined): void {
    if (!this.#superseded.has(key)) this.#superseded.set(key, previous);
    this.#pendingChanges++;
  }

  #recordTriggerTime(entry: SliceEntry): void {
    const text = entry.object.triggerTime;
    if (text === undefined) return;
    const time = parseTriggerTime(text);
    if (time === undefined) {
      const field = 'metadata.annotations[endpoints.kubernetes.io/last-change-trigger-time]';
      this.#context.onProblem(problemOf(entry.object, field, text, 'is not an RFC 3339 time'));
    } else if (time > this.#startTime) this.#ledger.recordTriggerTime(serviceOf(entry), time);
  }
}

function serviceOf({ object }: SliceEntry): string {
  return `${object.namespace}/${object.serviceName}`;
}

function changeOf(changes: Map<string, SliceChange>, entry: SliceEntry): SliceChange {
  const service = serviceOf(entry);
  const known = changes.get(service);
  if (known) return known;
  const change: SliceChange = { removed: [], added: [] };
  changes.set(service, change);
  return change;
}

/** Removes and yields up to `limit` entries of a map, oldest first. */
export function* takeFirst<K, V>(map: Map<K, V>, limit: number): Iterable<[K, V]> {
  let left = limit;
  for (const entry of map) {
    if (left-- <= 0) return;
    map.delete(entry[0]);
    yield entry;
  }
}
