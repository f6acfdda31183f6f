/** Label values of one series. */
export type Labels = Readonly<Record<string, string>>;

/** Declaration of a metric. A metric with labels appears only after its first use. */
export interface MetricOptions {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  /** Prefix of the help text, as in Kubernetes: `[ALPHA] `. */
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
 * A metric whose values are read at scrape time. It is absent until a reader is set, and when the reader fails or takes
 * too long.
 */
export interface ScrapedMetric {
  readFrom(read: () => readonly Sample[] | Promise<readonly Sample[]>): void;
}

/** Ignores all values; replaces metrics that the running mode does not expose. */
export const ignoredMetric: Counter & Gauge & Histogram & ScrapedMetric = {
  inc() {},
  set() {},
  add() {},
  observe() {},
  readFrom() {},
};
