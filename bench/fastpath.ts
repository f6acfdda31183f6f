/**
 * Compares the fast path of nftables mode with the usual way through the rules: exchanges on open connections, one large
 * transfer, short connections. Two nodes in network namespaces, one for each, take turns. Needs root and a kernel with
 * flowtables; `test/vm/vm-run` has one, and with `-i` its clock counts instructions, so that other load does not matter. CPU
 * time is that of the whole machine, with clients and server.
 */
import { flowtablesUnavailable } from '../test/kernel/flowtables.ts';
import { type PathName, paths, Route } from './fastpath/route.ts';
import type { Bench } from './part.ts';
import { type Measurement, measurements } from './report/measurement.ts';
import { median } from './report/median.ts';
import type { ClientTask } from './userspace/client.ts';

const rounds = 10;
const ways: Readonly<Record<string, readonly string[]>> = {
  'usual way': [],
  'fast path': ['--nftables-fast-path=services'],
};
const tasks = {
  exchanges: { kind: 'questions', count: 4_000, concurrency: 8 },
  MiB: { kind: 'bytes', count: 128, concurrency: 1 },
  connections: { kind: 'connections', count: 800, concurrency: 8 },
} satisfies Readonly<Record<string, Omit<ClientTask, 'port'>>>;

type What = keyof typeof tasks;

/** Of one task: done per second, and per second of CPU time. */
interface Rate {
  readonly perSecond: number;
  readonly perCpuSecond: number;
}

interface Run extends Rate {
  readonly path: PathName;
  readonly way: string;
  readonly what: What;
}

export async function run(bench: Bench): Promise<void> {
  const unavailable = flowtablesUnavailable();
  if (unavailable !== undefined) {
    bench.note(`not measured: ${unavailable}; test/vm/vm-run runs a command on one that has them`);
    return;
  }
  const routes = new Map<string, Route>();
  const runs: Run[] = [];
  try {
    for (const [i, [way, flags]] of Object.entries(ways).entries())
      routes.set(way, await Route.open(String(i), flags));
    for (let round = 1; round <= rounds; round++) {
      for (const path of Object.keys(paths) as PathName[]) {
        for (const what of Object.keys(tasks) as What[]) {
          for (const [way, route] of routes) {
            bench.step(`round ${round} of ${rounds}, ${what}, ${path}, ${way}`);
            runs.push({ path, way, what, ...(await measure(route, path, what)) });
          }
        }
      }
    }
  } finally {
    for (const route of routes.values()) await route.close();
  }
  bench.record((Object.keys(paths) as PathName[]).flatMap((path) => figures(path, runs)));
}

async function measure(route: Route, path: PathName, what: What): Promise<Rate> {
  const { seconds, failures, machineCpuSeconds } = await route.run(path, tasks[what]);
  if (failures > 0) throw new Error(`${failures} of ${what} failed, ${path}`);
  const { count } = tasks[what];
  return { perSecond: count / seconds, perCpuSecond: count / machineCpuSeconds };
}

function figures(path: PathName, runs: readonly Run[]): Measurement[] {
  const rate = (way: string, what: What, kind: keyof Rate): number =>
    median(
      runs.filter((run) => run.path === path && run.way === way && run.what === what).map((run) => run[kind]),
    );
  const rows = Object.keys(ways).map(
    (way) => [way, (what: What, kind: keyof Rate) => rate(way, what, kind)] as const,
  );
  const [[, usual], [, fast]] = rows as [(typeof rows)[0], (typeof rows)[0]];
  const ratio = (what: What, kind: keyof Rate): number => fast(what, kind) / usual(what, kind);
  return [...rows, ['fast path / usual way', ratio] as const].flatMap(([program, value]) =>
    measurements(
      { part: 'fastpath', topic: path, program },
      {
        'exchanges/s': [value('exchanges', 'perSecond'), ''],
        'exchanges per CPU second': [value('exchanges', 'perCpuSecond'), ''],
        'MiB per CPU second': [value('MiB', 'perCpuSecond'), ''],
        'connections/s': [value('connections', 'perSecond'), ''],
        'connections per CPU second': [value('connections', 'perCpuSecond'), ''],
      },
    ),
  );
}
