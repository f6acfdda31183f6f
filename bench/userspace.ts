/**
 * Userspace mode beside a direct connection and beside haproxy doing the same job: short connections, questions on a
 * hundred open connections, one large transfer. Rates are also told per second of processor time that the forwarding
 * process used, because clients and server share the cores with it. BENCH_SOAK_MINUTES=10 adds a long run that shows
 * whether memory grows.
 */
import type { ClientTask } from './userspace/client.ts';
import {
  cpuSeconds,
  residentMB,
  runClient,
  type Served,
  startHaproxy,
  startScript,
} from './userspace/processes.ts';

/** Taken in turns, and the median counts, because other work on the machine comes and goes. */
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

/** Measures all three and prints a line for each. */
export async function run(): Promise<void> {
  const server = await startScript('peer');
  const started: Served[] = [server];
  try {
    const relay = await startScript('relay', String(server.port));
    started.push(relay);
    const haproxy = await startHaproxy(server.port);
    if (haproxy) started.push(haproxy);
    else console.log('haproxy is not installed (Debian package haproxy); it is left out');
    const contestants: Contestant[] = [
      { name: 'direct', served: server, rounds: [] },
      ...(haproxy ? [{ name: 'haproxy', served: haproxy, rounds: [] }] : []),
      { name: 'userspace', served: relay, rounds: [] },
    ];
    for (const { served } of contestants) {
      await runClient({ kind: 'connections', port: served.port, count: 2_000, concurrency });
    }
    for (let round = 0; round < rounds; round++) {
      for (const contestant of contestants) contestant.rounds.push(await measure(contestant.served));
    }
    print(contestants);
    const minutes = Number(process.env.BENCH_SOAK_MINUTES ?? '0');
    if (minutes > 0) await soak(relay, minutes);
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

function print(contestants: readonly Contestant[]): void {
  const [direct, ...others] = contestants.map(({ name, rounds }) => ({ name, ...medians(rounds) }));
  if (!direct) return;
  const table = [direct, ...others].map((each) => ({
    '': each.name,
    'connections/s': Math.round(each.connections),
    'p50 ms': each.p50.toFixed(2),
    'p99 ms': each.p99.toFixed(2),
    'added p50 ms': (each.p50 - direct.p50).toFixed(2),
    'added p99 ms': (each.p99 - direct.p99).toFixed(2),
    'Gbit/s': each.gbit.toFixed(1),
    'connections/s per core': each === direct ? '' : Math.round(each.connectionsPerCore),
    'Gbit/s per core': each === direct ? '' : each.gbitPerCore.toFixed(1),
    lost: `${each.lost} of ${rounds * (shortConnections + questions)}`,
  }));
  console.table(Object.fromEntries(table.map(({ '': name, ...columns }) => [name, columns])));
  const peer = others.find(({ name }) => name === 'haproxy');
  const own = others.find(({ name }) => name === 'userspace');
  if (!peer || !own) return;
  const ratio = (a: number, b: number): string => (a / b).toFixed(2);
  console.log(
    'userspace : haproxy',
    `added latency p50 ${ratio(own.p50 - direct.p50, peer.p50 - direct.p50)},`,
    `p99 ${ratio(own.p99 - direct.p99, peer.p99 - direct.p99)};`,
    `connections/s ${ratio(own.connections, peer.connections)},`,
    `per core ${ratio(own.connectionsPerCore, peer.connectionsPerCore)};`,
    `Gbit/s per core ${ratio(own.gbitPerCore, peer.gbitPerCore)}`,
  );
}

/** Of each figure; what was lost is added up. */
function medians(rounds: readonly Measured[]): Measured {
  const median = (key: keyof Measured): number => {
    const sorted = rounds.map((round) => round[key]).toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  };
  return {
    connections: median('connections'),
    p50: median('p50'),
    p99: median('p99'),
    gbit: median('gbit'),
    connectionsPerCore: median('connectionsPerCore'),
    gbitPerCore: median('gbitPerCore'),
    lost: rounds.reduce((sum, { lost }) => sum + lost, 0),
  };
}

/** Memory at the beginning, after every tenth of the time, and at the end. */
async function soak({ port, pid }: Served, minutes: number): Promise<void> {
  if (pid === undefined) return;
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
  console.log(`soak ${minutes} min\t${total} connections\tlost ${lost}\tresident MB: ${sizes.join(' ')}`);
}

if (import.meta.main) await run();
