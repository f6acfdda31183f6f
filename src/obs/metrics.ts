/** Label values of one series. */
export type Labels = Readonly<Record<string, string>>;

/** What a metric is called and how it is cut up. Labelled metrics appear only after their first use. */
export interface MetricOptions {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  /** Put before the help text, as Kubernetes does: `[ALPHA] `. */
  readonly stability?: Stability;
}

export type Stability = 'ALPHA' | 'BETA' | 'STABLE';

export interface Counter {
  inc(labels?: Labels, by?: number): void;
}

export interface Gauge {
  set(value: number, labels?: Labels): void;
  add(delta: number, labels?: Labels): void;
}

export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/**
 * A metric whose values are read when somebody scrapes. Until a reader is given, and when it fails or takes too
 * long, the metric is absent.
 */
export interface ScrapedMetric {
  readFrom(read: () => readonly Sample[] | Promise<readonly Sample[]>): void;
}

/** Accepts everything and shows nothing: stands in for a metric that the running mode does not have. */
export const ignoredMetric: Counter & Gauge & Histogram & ScrapedMetric = {
  inc() {},
  set() {},
  add() {},
  observe() {},
  readFrom() {},
};
