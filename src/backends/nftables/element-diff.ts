import type { Bytes } from './bytes.ts';
import type { Value } from './compile.ts';
import type { SetName } from './layout.ts';

/** Elements of every set, by key. */
export type ElementMap = Map<SetName, Map<Bytes, Value>>;

/** Takes element operations. An element cannot be overwritten: a new value is a deletion and an addition. */
export interface ElementSink {
  delete(set: SetName, key: Bytes, value: Value): void;
  add(set: SetName, key: Bytes, value: Value): void;
}

/**
 * Passes on the difference between current and wanted elements. Call `wants` for each wanted element, then `finish`.
 * It stores no wanted element.
 */
export class ElementDiff {
  readonly #old: ElementMap;
  readonly #sink: ElementSink;

  constructor(sink: ElementSink, old: ElementMap = new Map()) {
    this.#sink = sink;
    this.#old = old;
  }

  had(set: SetName, key: Bytes, value: Value): void {
    elementsIn(this.#old, set).set(key, value);
  }

  wants(set: SetName, key: Bytes, value: Value): void {
    const old = this.#old.get(set);
    const known = old?.get(key);
    if (known !== undefined) old?.delete(key);
    if (known === value) return;
    if (known !== undefined) this.#sink.delete(set, key, known);
    this.#sink.add(set, key, value);
  }

  /** Returns the current elements of a set and stops comparing that set. */
  take(set: SetName): ReadonlyMap<Bytes, Value> {
    const old = this.#old.get(set) ?? new Map<Bytes, Value>();
    this.#old.delete(set);
    return old;
  }

  /** Deletes current elements that are not wanted. */
  finish(): void {
    for (const [set, elements] of this.#old) {
      for (const [key, value] of elements) this.#sink.delete(set, key, value);
    }
    this.#old.clear();
  }
}

export function elementsIn(map: ElementMap, set: SetName): Map<Bytes, Value> {
  const known = map.get(set);
  if (known) return known;
  const elements = new Map<Bytes, Value>();
  map.set(set, elements);
  return elements;
}
