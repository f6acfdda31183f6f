import type { HistogramSeries, LabelPair, MetricFamily, MetricType } from './family.ts';
import { ProtobufWriter } from './protobuf.ts';

/** Numbers of io.prometheus.client.MetricType. */
const typeNumbers: Readonly<Record<MetricType, number>> = { counter: 0, gauge: 1, histogram: 4 };
/** Field numbers of the values in io.prometheus.client.Metric. */
const valueFields = { gauge: 2, counter: 3, histogram: 7 } as const;

/**
 * Encodes metrics as length-delimited io.prometheus.client.MetricFamily messages. Histograms have classic buckets only,
 * not native ones.
 */
export function encodeDelimited(families: readonly MetricFamily[]): Uint8Array<ArrayBuffer> {
  const stream = new ProtobufWriter();
  for (const family of families) {
    stream.delimited((message) => {
      message.string(1, family.name).string(2, family.help).uint(3, typeNumbers[family.type]);
      writeMetrics(message, family);
    });
  }
  return stream.finish();
}

function writeMetrics(message: ProtobufWriter, family: MetricFamily): void {
  if (family.type === 'histogram') {
    for (const series of family.series) {
      message.message(4, (metric) => {
        writeLabels(metric, series.labels);
        metric.message(valueFields.histogram, (histogram) => writeHistogram(histogram, series));
      });
    }
    return;
  }
  const field = valueFields[family.type];
  for (const { labels, value } of family.series) {
    message.message(4, (metric) => {
      writeLabels(metric, labels);
      metric.message(field, (inner) => inner.double(1, value));
    });
  }
}

function writeLabels(metric: ProtobufWriter, labels: readonly LabelPair[]): void {
  for (const [name, value] of labels) metric.message(1, (pair) => pair.string(1, name).string(2, value));
}

function writeHistogram(message: ProtobufWriter, { buckets, sum, count }: HistogramSeries): void {
  message.uint(1, count).double(2, sum);
  for (const { upperBound, cumulativeCount } of buckets) {
    message.message(3, (bucket) => bucket.uint(1, cumulativeCount).double(2, upperBound));
  }
}
