import type { LabelPair, MetricFamily } from './family.ts';

/** Formats metrics in the Prometheus text format 0.0.4, byte for byte as Go's client library does. */
export function formatText(families: readonly MetricFamily[]): string {
  const lines: string[] = [];
  for (const family of families) {
    lines.push(`# HELP ${family.name} ${escapeHelp(family.help)}\n# TYPE ${family.name} ${family.type}\n`);
    if (family.type === 'histogram') writeHistograms(lines, family);
    else for (const { labels, value } of family.series) lines.push(sample(family.name, pairs(labels), value));
  }
  return lines.join('');
}

function writeHistograms(lines: string[], family: MetricFamily & { type: 'histogram' }): void {
  for (const { labels, buckets, sum, count } of family.series) {
    const own = pairs(labels);
    const lead = own === '' ? '' : `${own},`;
    for (const { upperBound, cumulativeCount } of buckets) {
      const le = `${lead}le="${formatGoFloat(upperBound)}"`;
      lines.push(sample(`${family.name}_bucket`, le, cumulativeCount));
    }
    lines.push(sample(`${family.name}_bucket`, `${lead}le="+Inf"`, count));
    lines.push(sample(`${family.name}_sum`, own, sum), sample(`${family.name}_count`, own, count));
  }
}

function sample(name: string, labels: string, value: number): string {
  return `${name}${labels === '' ? '' : `{${labels}}`} ${formatGoFloat(value)}\n`;
}

function pairs(labels: readonly LabelPair[]): string {
  return labels.map(([name, value]) => `${name}="${escapeLabel(value)}"`).join(',');
}

function escapeLabel(value: string): string {
  return value.replace(/[\\\n"]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`));
}

function escapeHelp(help: string): string {
  return help.replace(/[\\\n]/g, (c) => (c === '\n' ? '\\n' : '\\\\'));
}

/** Formats a number as strconv's 'g' format with the shortest precision: 604800, 2.592e+06, 5e-06, +Inf. */
export function formatGoFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (Object.is(value, -0)) return '-0';
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-4 && size < 1e6)) return String(value);
  const [mantissa = '', exponent = ''] = value.toExponential().split('e');
  return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, '0')}`;
}
