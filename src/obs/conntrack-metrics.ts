import {
  describeCounter as counter,
  type Descriptor,
  describeGauge as gauge,
  type MetricFamily,
  oneValue as one,
} from './family.ts';
import { type ProcReader, procReader } from './process-metrics.ts';
import type { Registry } from './registry.ts';

const descriptors = {
  entries: gauge(
    'kubeproxy_ts_conntrack_entries',
    "[ALPHA] Connections in the kernel's connection table, also those that pass through no Service",
  ),
  limit: gauge('kubeproxy_ts_conntrack_entries_limit', '[ALPHA] Connections that the table has room for'),
  insertFailed: counter(
    'kubeproxy_ts_conntrack_insert_failed_total',
    '[ALPHA] Connections that could not be added to the table, because another one had the same addresses and ports',
  ),
  dropped: counter(
    'kubeproxy_ts_conntrack_dropped_total',
    '[ALPHA] Packets dropped because their connection could not be added to the table, for example because it was full',
  ),
  earlyDropped: counter(
    'kubeproxy_ts_conntrack_early_dropped_total',
    '[ALPHA] Unanswered connections removed from the full table to make room for others',
  ),
} as const satisfies Record<string, Descriptor>;

/** Registers metrics of the connection table of the node. Each is absent where the kernel has no file with its value. */
export function registerConntrackMetrics(
  registry: Registry,
  proc: Pick<ProcReader, 'read'> = procReader,
): void {
  registry.register({ families: Object.values(descriptors), collect: () => collect(proc) });
}

async function collect(proc: Pick<ProcReader, 'read'>): Promise<MetricFamily[]> {
  const [entries, limit, statistics] = await Promise.all([
    readIfThere(proc, 'sys/net/netfilter/nf_conntrack_count'),
    readIfThere(proc, 'sys/net/netfilter/nf_conntrack_max'),
    readIfThere(proc, 'self/net/stat/nf_conntrack'),
  ]);
  return [
    one(descriptors.entries, decimal(entries)),
    one(descriptors.limit, decimal(limit)),
    one(descriptors.insertFailed, sumOf('insert_failed', statistics)),
    one(descriptors.dropped, sumOf('drop', statistics)),
    one(descriptors.earlyDropped, sumOf('early_drop', statistics)),
  ];
}

/** Returns an empty text for a file that is not there: connection tracking may be a module that is not loaded. */
async function readIfThere(proc: Pick<ProcReader, 'read'>, path: string): Promise<string> {
  try {
    return await proc.read(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
}

/** NaN, which stands for no value, unless the text is a decimal number. */
function decimal(text: string): number {
  return /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
}

/** The sum of a column over all CPUs: a line of names, then a line of hexadecimal numbers per CPU. NaN without it. */
function sumOf(column: string, statistics: string): number {
  const [names = [], ...cpus] = statistics
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const at = names.indexOf(column);
  return at < 0 ? Number.NaN : cpus.reduce((sum, values) => sum + Number.parseInt(values[at] ?? '', 16), 0);
}
