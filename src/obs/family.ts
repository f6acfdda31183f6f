/** A label with its value. */
export type LabelPair = readonly [name: string, value: string];

export type MetricType = 'counter' | 'gauge' | 'histogram';

/** A metric without its values. */
export interface Descriptor {
  readonly name: string;
  readonly type: MetricType;
  /** As exposed, stability prefix included. */
  readonly help: string;
}

export interface ValueSeries {
  /** Sorted by name. */
  readonly labels: readonly LabelPair[];
  readonly value: number;
}

export interface HistogramSeries {
  readonly labels: readonly LabelPair[];
  /** Upper bounds in rising order with the number of observations at or below each. +Inf is omitted: it is `count`. */
  readonly buckets: readonly { readonly upperBound: number; readonly cumulativeCount: number }[];
  readonly sum: number;
  readonly count: number;
}

/** One metric with its values at a scrape. */
export type MetricFamily = Descriptor &
  (
    | { readonly type: 'counter' | 'gauge'; readonly series: readonly ValueSeries[] }
    | { readonly type: 'histogram'; readonly series: readonly HistogramSeries[] }
  );

export function describeGauge(name: string, help: string) {
  return { name, help, type: 'gauge' } as const;
}

export function describeCounter(name: string, help: string) {
  return { name, help, type: 'counter' } as const;
}

/** Makes a metric without labels; it has no series if the value is NaN. */
export function oneValue(
  descriptor: Descriptor & { type: 'counter' | 'gauge' },
  value: number,
): MetricFamily {
  return { ...descriptor, series: Number.isNaN(value) ? [] : [{ labels: [], value }] };
}
