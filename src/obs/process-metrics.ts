import { readFileSync } from 'node:fs';
import {
  describeCounter as counter,
  type Descriptor,
  describeGauge as gauge,
  type MetricFamily,
  oneValue as one,
} from './family.ts';
import type { Registry } from './registry.ts';

/** Reads /proc; tests replace it. */
export interface ProcReader {
  read(path: string): Promise<string>;
  list(path: string): Promise<readonly string[]>;
  residentBytes(): number;
}

/** Clock ticks per second in /proc: 100 on every architecture. */
const ticksPerSecond = 100;

const descriptors = {
  cpu: counter('process_cpu_seconds_total', 'User and system CPU time spent, in seconds'),
  maxFds: gauge('process_max_fds', 'File descriptors the process may open'),
  received: counter('process_network_receive_bytes_total', 'Bytes received in the network namespace'),
  transmitted: counter('process_network_transmit_bytes_total', 'Bytes sent in the network namespace'),
  openFds: gauge('process_open_fds', 'Open file descriptors'),
  resident: gauge('process_resident_memory_bytes', 'Resident memory'),
  start: gauge('process_start_time_seconds', 'When the process started, in seconds since the epoch'),
  virtual: gauge('process_virtual_memory_bytes', 'Address space in use'),
  maxVirtual: gauge('process_virtual_memory_max_bytes', 'Address space the process may use'),
} as const satisfies Record<string, Descriptor>;

/** Registers the standard process collector. */
export function registerProcessMetrics(registry: Registry, proc: ProcReader = procReader): void {
  registry.register({ families: Object.values(descriptors), collect: () => collect(proc) });
}

/** Registers only the start time, from which a reader knows when counters began. */
export function registerStartTime(registry: Registry, startTime: number): void {
  registry.register({
    families: [descriptors.start],
    collect: () => [one(descriptors.start, startTime)],
  });
}

/** Returns when the process started, in seconds since the epoch, to the hundredth. */
export async function processStartTime(proc: ProcReader = procReader): Promise<number> {
  const [stat, system] = await Promise.all([proc.read('self/stat'), proc.read('stat')]);
  return startTime(statFields(stat), system);
}

async function collect(proc: ProcReader): Promise<MetricFamily[]> {
  const [stat, system, limits, netstat, fds] = await Promise.all([
    proc.read('self/stat'),
    proc.read('stat'),
    proc.read('self/limits'),
    proc.read('self/net/netstat'),
    proc.list('self/fd'),
  ]);
  const fields = statFields(stat);
  const octets = ipOctets(netstat);
  return [
    one(descriptors.cpu, (field(fields, 14) + field(fields, 15)) / ticksPerSecond),
    one(descriptors.maxFds, softLimit(limits, 'Max open files')),
    one(descriptors.received, octets.received),
    one(descriptors.transmitted, octets.transmitted),
    // The listing itself holds one descriptor open.
    one(descriptors.openFds, fds.length - 1),
    one(descriptors.resident, proc.residentBytes()),
    one(descriptors.start, startTime(fields, system)),
    one(descriptors.virtual, field(fields, 23)),
    one(descriptors.maxVirtual, softLimit(limits, 'Max address space')),
  ];
}

/** Returns the fields of a stat line from the third on. The second, the command, may contain blanks and parentheses. */
function statFields(stat: string): readonly string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** Returns a field by its number in proc_pid_stat(5), counted from one. */
function field(fields: readonly string[], number: number): number {
  return Number(fields[number - 3]);
}

function startTime(fields: readonly string[], system: string): number {
  const boot = Number(/^btime (\d+)$/m.exec(system)?.[1]);
  return boot + field(fields, 22) / ticksPerSecond;
}

function softLimit(limits: string, name: string): number {
  const value = limits
    .split('\n')
    .find((line) => line.startsWith(name))
    ?.slice(name.length)
    .trim()
    .split(/\s+/)[0];
  return value === 'unlimited' ? 2 ** 64 : Number(value);
}

/** Reads two lines that start with `IpExt:`, the first with names, the second with numbers. */
function ipOctets(netstat: string): { received: number; transmitted: number } {
  const [names = '', values = ''] = netstat.split('\n').filter((line) => line.startsWith('IpExt:'));
  const columns = names.split(' ');
  const numbers = values.split(' ');
  const column = (name: string) => Number(numbers[columns.indexOf(name)]);
  return { received: column('InOctets'), transmitted: column('OutOctets') };
}

/** The real /proc. */
export const procReader: ProcReader = {
  // Not in another thread: that takes five times the CPU time of the reading, which is about 0.03 ms.
  async read(path) {
    return readFileSync(`/proc/${path}`, 'utf8');
  },
  async list(path) {
    const { readdir } = await import('node:fs/promises');
    return readdir(`/proc/${path}`);
  },
  residentBytes: () => process.memoryUsage.rss(),
};
