import type { LabelPair } from './family.ts';
import type { Labels } from './metrics.ts';

/** The series of one metric: one value object per combination of label values. */
export class SeriesTable<T> {
  readonly #metric: string;
  readonly #names: readonly string[];
  readonly #make: () => T;
  readonly #series = new Map<string, { labels: readonly LabelPair[]; value: T }>();

  constructor(metric: string, labelNames: readonly string[], make: () => T) {
    this.#metric = metric;
    this.#names = [...labelNames].sort();
    this.#make = make;
    this.clear();
  }

  /** Returns the value for these labels, created on first use. Throws when the labels are not the declared ones. */
  at(labels: Labels | undefined): T {
    const key = this.#key(labels);
    const known = this.#series.get(key);
    if (known) return known.value;
    const value = this.#make();
    this.#series.set(key, { labels: this.#names.map((name) => [name, labels?.[name] ?? '']), value });
    return value;
  }

  /** Returns all series, ordered by their label values. */
  list<S>(show: (labels: readonly LabelPair[], value: T) => S): S[] {
    const keys = [...this.#series.keys()].sort();
    return keys.flatMap((key) => {
      const entry = this.#series.get(key);
      return entry ? [show(entry.labels, entry.value)] : [];
    });
  }

  /** Removes all series; a metric without labels shows zero again. */
  clear(): void {
    this.#series.clear();
    if (this.#names.length === 0) this.at(undefined);
  }

  #key(labels: Labels | undefined): string {
    let key = '';
    for (const name of this.#names) {
      const value = labels?.[name];
      if (value === undefined) throw new TypeError(`metric ${this.#metric}: label ${name} is missing`);
      key += `${value}\u0000`;
    }
    for (const name in labels) {
      if (!this.#names.includes(name)) throw new TypeError(`metric ${this.#metric}: unknown label ${name}`);
    }
    return key;
  }
}
