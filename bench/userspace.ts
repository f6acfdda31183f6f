/**
 * Compares userspace mode with a direct connection and with haproxy: short connections, requests on a hundred open
 * connections, one large transfer. Rates are also given per second of CPU time of the forwarding process, because
 * clients and server share the cores with it. BENCH_SOAK_MINUTES=10 adds a long run that shows whether memory grows.
 */
import type { Bench } from './part.ts';
import { type Measurement, measurements, type Subject } from './report/measurement.ts';
import { median } from './report/median.ts';
import type { ClientTask } from './userspace/client.ts';
import {
  cpuSeconds,
  residentMB,
  runClient,
  type Served,
  startHaproxy,
  startScript,
} from './userspace/processes.ts';

/** The programs take turns and the median counts, because the load of the machine varies. */
const rounds = 5;
const shortConnections = 20_000;
const questions = 20_000;
const bulkMiB = 2_048;
const concurrency = 100;

interface Measured {
  readonly connections: number;
  readonly p50: number;
  readonly p99: number;
  readonly gbit: number;
  readonly connectionsPerCore: number;
  readonly gbitPerCore: number;
  readonly lost: number;
}

interface Contestant {
  readonly name: string;
  readonly served: Served;
  readonly rounds: Measured[];
}

/** Measures all three. */
export async function run(bench: Bench): Promise<void> {
  const server = await startScript('peer');
  const started: Served[] = [server];
  try {
    const relay = await startScript('relay', [String(server.port)]);
    started.push(relay);
    const haproxy = await startHaproxy(server.port);
    if (haproxy) started.push(haproxy);
    else bench.note('haproxy is not installed (Debian package haproxy); it is left out');
    const contestants: Contestant[] = [
      { name: 'direct', served: server, rounds: [] },
      ...(haproxy ? [{ name: 'haproxy', served: haproxy, rounds: [] }] : []),
      { name: 'userspace', served: relay, rounds: [] },
    ];
    for (const { served } of contestants) {
      await runClient({ kind: 'connections', port: served.port, count: 2_000, concurrency });
    }
    for (let round = 0; round < rounds; round++) {
      for (const contestant of contestants) {
        bench.step(`round ${round + 1} of ${rounds}, ${contestant.name}`);
        contestant.rounds.push(await measure(contestant.served));
      }
    }
    bench.record(contestants.flatMap((each) => figures(each, contestants[0])));
    const minutes = Number(process.env.BENCH_SOAK_MINUTES ?? '0');
    if (minutes > 0) bench.note(await soak(relay, minutes));
  } finally {
    for (const each of started) each.close();
  }
}

async function measure({ port, pid = 0 }: Served): Promise<Measured> {
  const timed = async (task: Omit<ClientTask, 'port'>) => {
    const before = cpuSeconds(pid);
    const result = await runClient({ ...task, port });
    return { ...result, cpu: cpuSeconds(pid) - before };
  };
  const short = await timed({ kind: 'connections', count: shortConnections, concurrency });
  const asked = await timed({ kind: 'questions', count: questions, concurrency });
  const bulk = await timed({ kind: 'bytes', count: bulkMiB, concurrency: 1 });
  const gbit = (bulkMiB * (1 << 20) * 8) / 1e9;
  return {
    connections: shortConnections / short.seconds,
    p50: asked.p50,
    p99: asked.p99,
    gbit: gbit / bulk.seconds,
    connectionsPerCore: shortConnections / short.cpu,
    gbitPerCore: gbit / bulk.cpu,
    lost: short.failures + asked.failures + bulk.failures,
  };
}

function figures({ name, rounds }: Contestant, first: Contestant | undefined): Measurement[] {
  const of = medians(rounds);
  const subject: Subject = { part: 'userspace', topic: 'beside a direct connection', program: name };
  const measured = measurements(subject, {
    'connections/s': [of.connections, ''],
    p50: [of.p50, 'ms'],
    p99: [of.p99, 'ms'],
    'Gbit/s': [of.gbit, ''],
    lost: [of.lost, `of ${rounds.length * (shortConnections + questions)}`],
  });
  if (!first || first.name === name) return measured;
  const direct = medians(first.rounds);
  const beyond = measurements(subject, {
    'added p50': [of.p50 - direct.p50, 'ms'],
    'added p99': [of.p99 - direct.p99, 'ms'],
    'connections/s per core': [of.connectionsPerCore, ''],
    'Gbit/s per core': [of.gbitPerCore, ''],
  });
  return [...measured, ...beyond];
}

/** The median of each figure; lost connections are added up. */
function medians(rounds: readonly Measured[]): Measured {
  const of = (key: keyof Measured): number => median(rounds.map((round) => round[key]));
  return {
    connections: of('connections'),
    p50: of('p50'),
    p99: of('p99'),
    gbit: of('gbit'),
    connectionsPerCore: of('connectionsPerCore'),
    gbitPerCore: of('gbitPerCore'),
    lost: rounds.reduce((sum, { lost }) => sum + lost, 0),
  };
}

/** Reports the memory at the beginning, after every tenth of the time, and at the end. */
async function soak({ port, pid }: Served, minutes: number): Promise<string> {
  if (pid === undefined) return 'no soak: the relay is not a process of its own';
  const end = performance.now() + minutes * 60_000;
  const sizes: string[] = [];
  let [total, lost] = [0, 0];
  for (let next = 0; performance.now() < end; ) {
    const { failures } = await runClient({ kind: 'connections', port, count: 20_000, concurrency });
    total += 20_000;
    lost += failures;
    if (performance.now() < next) continue;
    next = performance.now() + minutes * 6_000;
    sizes.push(residentMB(pid).toFixed(0));
  }
  return `soak of ${minutes} min: ${total} connections, ${lost} lost, resident MB ${sizes.join(' ')}`;
}
