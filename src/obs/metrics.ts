/** Label values of one series. */
export type Labels = Readonly<Record<string, string>>;

/** What a metric is called and how it is cut up. Labelled metrics appear only after their first use. */
export interface MetricOptions {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

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
