import type { HistogramSeries, ValueSeries } from './family.ts';
import type { Counter, Gauge, Histogram, Labels } from './metrics.ts';
import { SeriesTable } from './series-table.ts';

/** A counter or gauge with its series. */
export class StoredValue implements Counter, Gauge {
  readonly #table: SeriesTable<{ value: number }>;

  constructor(name: string, labels: readonly string[]) {
    this.#table = new SeriesTable(name, labels, () => ({ value: 0 }));
  }

  inc(labels?: Labels, by = 1): void {
    if (!(by >= 0)) throw new RangeError(`a counter cannot go down by ${by}`);
    this.add(by, labels);
  }

  set(value: number, labels?: Labels): void {
    this.#table.at(labels).value = value;
  }

  add(delta: number, labels?: Labels): void {
    this.#table.at(labels).value += delta;
  }

  series(): ValueSeries[] {
    return this.#table.list((labels, { value }) => ({ labels, value }));
  }

  clear(): void {
    this.#table.clear();
  }
}

/** Observations per bucket; the last bucket has everything above the highest bound. */
interface Distribution {
  readonly counts: number[];
  sum: number;
}

export class StoredHistogram implements Histogram {
  readonly #bounds: readonly number[];
  readonly #table: SeriesTable<Distribution>;

  constructor(name: string, labels: readonly string[], bounds: readonly number[]) {
    const rising = bounds.every((bound, i) => Number.isFinite(bound) && bound > (bounds[i - 1] ?? -Infinity));
    if (!rising) throw new RangeError(`metric ${name}: bucket bounds must be finite and rise: ${bounds}`);
    this.#bounds = [...bounds];
    this.#table = new SeriesTable(name, labels, () => ({
      counts: new Array(bounds.length + 1).fill(0),
      sum: 0,
    }));
  }

  observe(value: number, labels?: Labels): void {
    const distribution = this.#table.at(labels);
    const bucket = this.#bucketOf(value);
    distribution.counts[bucket] = (distribution.counts[bucket] ?? 0) + 1;
    distribution.sum += value;
  }

  series(): HistogramSeries[] {
    return this.#table.list((labels, { counts, sum }) => {
      let cumulativeCount = 0;
      const buckets = this.#bounds.map((upperBound, i) => {
        cumulativeCount += counts[i] ?? 0;
        return { upperBound, cumulativeCount };
      });
      return { labels, buckets, sum, count: cumulativeCount + (counts[this.#bounds.length] ?? 0) };
    });
  }

  clear(): void {
    this.#table.clear();
  }

  /** Returns the first bucket whose bound is not below the value. */
  #bucketOf(value: number): number {
    let low = 0;
    let high = this.#bounds.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value <= (this.#bounds[middle] ?? Infinity)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
