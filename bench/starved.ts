/**
 * Measures programs that get little CPU time: under a limit of 10 % of a core, and beside eight busy loops of the same
 * priority. Also measures their memory as the kubelet counts it. kube-proxy-ts and, if set, the peer, in turns. Needs root. Everything happens in network namespaces and control
 * groups, which are removed at the end.
 */
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../src/lib/thrown.ts';
import { useFlavour } from '../test/iptables/flavours.ts';
import { PoliteClient } from './flood/polite-client.ts';
import type { Bench } from './part.ts';
import { type Cluster, endpointPort, listenerIP, type Mode, type Size } from './programs/cluster.ts';
import { parseSizes } from './programs/figures.ts';
import { changeEffect, patiently, settledMs, spread, withProgram } from './programs/measure.ts';
import { handBack, inNamespace, taskOf } from './programs/namespace.ts';
import { Probe, sharedClock } from './programs/probe.ts';
import { ownProgram, type Program } from './programs/program.ts';
import { type Measurement, measurements, sizeText } from './report/measurement.ts';
import { ControlGroup } from './starved/control-group.ts';
import { measureFlowPass } from './starved/flow-pass.ts';

import { type Hardship, hardships, Ordeal } from './starved/hardship.ts';
import { ProgramCopy } from './starved/program-copy.ts';

const part = 'starved';
const defaultSizes = '20x3,1000x3,10000x10';
const modes: readonly Mode[] = ['nftables', 'iptables'];
/** Beyond this many services a start of the peer takes minutes, so each program starts only once. */
const quickServices = 1_000;
const rounds = 3;
/** At most this many changes, and none begins after this time. */
const changes = 50;
const changesMs = 20_000;
const betweenChangesMs = 50;
const idleMs = 10_000;

interface Task {
  readonly hardship: Hardship | 'memory';
  readonly mode: Mode;
  readonly size: Size;
  readonly program: string;
  readonly path: string;
}

export async function run(bench: Bench): Promise<void> {
  const { peer, sizes = defaultSizes } = bench;
  const programs = Object.entries({ 'kube-proxy-ts': ownProgram, ...(peer !== undefined && { peer }) });
  for (const hardship of [...hardships, 'memory'] as const) {
    for (const mode of modes) {
      for (const size of parseSizes(sizes)) {
        const tasks = programs.map(([program, path]) => ({ hardship, mode, size, program, path }));
        bench.record(await inTurns(bench, tasks));
      }
    }
  }
}

/** Measures each task several times, in turns. Returns the median of each figure. */
async function inTurns({ step, note }: Bench, tasks: readonly Task[]): Promise<Measurement[]> {
  const all: Measurement[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const task of tasks) {
      const { hardship, mode, size, program } = task;
      if (round > 1 && size.services > quickServices) continue;
      const what = `${hardship}, ${mode}, ${sizeText(size)}, ${program}`;
      step(`${what}, round ${round}`);
      try {
        all.push(...(await inNamespace(import.meta.filename, [task])));
      } catch (error) {
        note(`${what}: ${messageOf(error)}`);
      }
    }
  }
  return medians(all);
}

function medians(all: readonly Measurement[]): Measurement[] {
  const same = Map.groupBy(all, ({ program, metric }) => `${program} ${metric}`);
  return [...same.values()].flatMap((some) => {
    const [first] = some;
    return first ? [{ ...first, value: spread(some.map(({ value }) => value)).p50 }] : [];
  });
}

async function inside(task: Task): Promise<Measurement[]> {
  useFlavour('nft');
  const listener = createServer((socket) => socket.on('error', () => socket.destroy()).end());
  listener.listen(endpointPort, listenerIP);
  const probe = new Probe();
  try {
    const { hardship } = task;
    return hardship === 'memory'
      ? await measureMemory(task, probe)
      : await measureOrdeal(task, hardship, probe);
  } finally {
    await probe.close();
    listener.close();
  }
}

/** Measures the working set of an idle program whose files were in nobody's memory. */
async function measureMemory(
  { mode, size, program: name, path }: Task,
  probe: Probe,
): Promise<Measurement[]> {
  const copy = new ProgramCopy(path);
  copy.forgetFiles();
  const group = new ControlGroup(`kpt-bench-${process.pid}`);
  try {
    return await withProgram({ path: copy.path, mode, through: group.through }, size, probe, async () => {
      await probe.longestAnswer();
      await sleep(idleMs);
      return measurements(
        { part, topic: `${mode} mode, memory`, program: name, size },
        { 'working set': [group.workingSetMB(), 'MB'] },
      );
    });
  } finally {
    await group.remove();
    copy.remove();
  }
}

async function measureOrdeal(
  { mode, size, program: name, path }: Task,
  hardship: Hardship,
  probe: Probe,
): Promise<Measurement[]> {
  const copy = new ProgramCopy(path);
  const ordeal = new Ordeal(hardship);
  const subject = { part, topic: `${mode} mode, ${hardship}`, program: name, size };
  try {
    return await withProgram(
      { path: copy.path, mode, through: ordeal.through },
      size,
      probe,
      async (cluster, program, cold) => {
        await probe.longestAnswer();
        await sleep(settledMs);
        const coldCpu = ordeal.group.cpuMs();
        const { effects, livez } = await measureChanges(cluster, program, probe);
        const before = ordeal.group.cpuMs();
        const pass = await measureFlowPass(cluster, program);
        return measurements(subject, {
          cold: [cold, 's'],
          'CPU until 3 s later': [coldCpu / 1000, 's'],
          'change p50': [spread(effects).p50, 'ms'],
          'change p99': [spread(effects).p99, 'ms'],
          'livez p99': [spread(livez).p99, 'ms'],
          'pass over 50,000 flows': [pass, 'ms'],
          'CPU for an endpoint with flows': [ordeal.group.cpuMs() - before, 'ms'],
        });
      },
    );
  } finally {
    await ordeal.end();
    copy.remove();
  }
}

interface Changes {
  /** Times from changes to their effects, in ms. */
  readonly effects: readonly number[];
  readonly livez: readonly number[];
}

async function measureChanges(cluster: Cluster, program: Program, probe: Probe): Promise<Changes> {
  const polite = new PoliteClient();
  const begun = sharedClock();
  const effects: number[] = [];
  for (let i = 0; i < changes && sharedClock() - begun < changesMs; i++) {
    const [who, outcome] =
      i % 2 === 0 ? (['one-refusing', 'refused'] as const) : (['listener', 'connected'] as const);
    effects.push(
      await patiently(program, changeEffect(cluster, probe, cluster.size.services - 1, who, outcome)),
    );
    await sleep(betweenChangesMs);
  }
  const { times } = await polite.stop();
  return { effects, livez: times };
}

if (import.meta.main) {
  const [task] = taskOf<[Task]>(process.argv);
  handBack(await inside(task));
}
