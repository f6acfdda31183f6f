/** A label with its value. */
export type LabelPair = readonly [name: string, value: string];

export type MetricType = 'counter' | 'gauge' | 'histogram';

/** What is known of a metric before it has any value. */
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
  /** Upper bounds in rising order with the observations at or below each; +Inf is left out, being `count`. */
  readonly buckets: readonly { readonly upperBound: number; readonly cumulativeCount: number }[];
  readonly sum: number;
  readonly count: number;
}

/** One metric as it stands at a scrape. */
export type MetricFamily = Descriptor &
  (
    | { readonly type: 'counter' | 'gauge'; readonly series: readonly ValueSeries[] }
    | { readonly type: 'histogram'; readonly series: readonly HistogramSeries[] }
  );
