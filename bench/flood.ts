/**
 * Measures what a flood of HTTP on the ports of a kube-proxy does to its work, in nftables mode: how long a change and
 * /livez take at rest and during the flood, in turns, and what the flood costs. kube-proxy-ts and, if set, the peer. Needs
 * root. Everything happens in network namespaces, which are removed at the end.
 */
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { FloodClient } from '../test/cluster/flood/client.ts';
import type { Flood } from '../test/cluster/flood/flood.ts';
import { floods, healthCheckNodePort } from './flood/floods.ts';
import { PoliteClient } from './flood/polite-client.ts';
import type { Bench } from './part.ts';
import { type Cluster, endpointPort, listenerIP, type Size } from './programs/cluster.ts';
import { parseSizes } from './programs/figures.ts';
import { changeEffect, patiently, spread, withProgram } from './programs/measure.ts';
import { handBack, inNamespace, taskOf } from './programs/namespace.ts';
import { Probe, sharedClock } from './programs/probe.ts';
import { cpuSince, ownProgram, type Program } from './programs/program.ts';
import { type Measurement, measurements, sizeText } from './report/measurement.ts';

const part = 'flood';
const mode = 'nftables';
const defaultSizes = '1000x3';
/**
 * Short rounds, so that other work of the machine meets both phases alike. A phase has about 1,500 changes in all rounds:
 * p99 is then the 15th longest.
 */
const rounds = 8;
const settledMs = 2_000;
/** Changes are made one after the other until this time. */
const phaseMs = 4_000;
const pauseMs = 15;
const memoryLookMs = 100;
const metricsURL = 'http://127.0.0.1:10249/metrics';

interface Task {
  readonly flood: Flood;
  readonly size: Size;
  readonly program: string;
  readonly path: string;
}

export async function run({ sizes = defaultSizes, peer, step, record }: Bench): Promise<void> {
  const programs = Object.entries({ 'kube-proxy-ts': ownProgram, ...(peer !== undefined && { peer }) });
  for (const size of parseSizes(sizes)) {
    for (const flood of floods) {
      for (const [program, path] of programs) {
        step(`${flood.name}, ${program}, ${sizeText(size)}`);
        record(await inNamespace(import.meta.filename, [{ flood, size, program, path } satisfies Task]));
      }
    }
  }
}

async function inside({ flood, size, program: name, path }: Task): Promise<Measurement[]> {
  const listener = createServer((socket) => socket.on('error', () => socket.destroy()).end());
  listener.listen(endpointPort, listenerIP);
  const probe = new Probe();
  try {
    return await withProgram({ path, mode }, size, probe, async (cluster, program) => {
      cluster.addHealthCheckPort(healthCheckNodePort);
      await sleep(settledMs);
      await probe.longestAnswer();
      // The program measures its event loop after the first scrape.
      await longestLoopDelay();
      const quiet: Phase[] = [];
      const flooded: Phase[] = [];
      for (let round = 0; round < rounds; round++) {
        quiet.push(await measurePhase(cluster, program, probe));
        const client = new FloodClient(flood);
        await Promise.race([client.started(), sleep(phaseMs)]);
        flooded.push(await measurePhase(cluster, program, probe));
        await client.stop();
        await sleep(settledMs);
      }
      return figuresOf({ flood, size, name }, quiet, flooded);
    });
  } finally {
    await probe.close();
    listener.close();
  }
}

interface Phase {
  /** Times from changes to their effects, in ms. */
  readonly effects: readonly number[];
  readonly livez: readonly number[];
  readonly unanswered: number;
  readonly peakMB: number;
  readonly cpuShare: number;
  readonly loopDelay: number;
}

async function measurePhase(cluster: Cluster, program: Program, probe: Probe): Promise<Phase> {
  const polite = new PoliteClient();
  let peakMB = program.memory().now;
  const look = setInterval(() => {
    peakMB = Math.max(peakMB, program.memory().now);
  }, memoryLookMs);
  const before = program.cpu();
  const begun = sharedClock();
  const effects: number[] = [];
  for (let i = 0; sharedClock() - begun < phaseMs; i++) {
    const [who, outcome] =
      i % 2 === 0 ? (['one-refusing', 'refused'] as const) : (['listener', 'connected'] as const);
    effects.push(
      await patiently(program, changeEffect(cluster, probe, cluster.size.services - 1, who, outcome)),
    );
    await sleep(pauseMs);
  }
  const elapsed = sharedClock() - begun;
  const { own, kernel } = cpuSince(before, program.cpu());
  clearInterval(look);
  const { times, failed } = await polite.stop();
  const cpuShare = (100 * (own + kernel)) / elapsed;
  return {
    effects,
    livez: times,
    unanswered: failed,
    peakMB,
    cpuShare,
    loopDelay: await longestLoopDelay(),
  };
}

/** The longest delay of the event loop since the last call, in ms; 0 if the program has no such metric. */
async function longestLoopDelay(): Promise<number> {
  const page = await fetch(metricsURL, { signal: AbortSignal.timeout(phaseMs) }).then(
    (answer) => answer.text(),
    () => '',
  );
  return 1000 * Number(/^nodejs_eventloop_lag_max_seconds (.*)$/m.exec(page)?.[1] ?? 0);
}

function figuresOf(
  { flood, size, name }: { readonly flood: Flood; readonly size: Size; readonly name: string },
  quiet: readonly Phase[],
  flooded: readonly Phase[],
): Measurement[] {
  const effects = (phases: readonly Phase[]) => spread(phases.flatMap((phase) => phase.effects));
  const livez = flooded.flatMap((phase) => phase.livez);
  const most = (values: readonly number[]) => Math.max(...values);
  const longest = (phases: readonly Phase[]) => most(phases.map((phase) => most(phase.effects)));
  const atRest = quiet[0]?.peakMB ?? 0;
  return measurements(
    { part, topic: flood.name, program: name, size },
    {
      'change p50, at rest': [effects(quiet).p50, 'ms'],
      'change p99, at rest': [effects(quiet).p99, 'ms'],
      'change longest, at rest': [longest(quiet), 'ms'],
      'change p50, flood': [effects(flooded).p50, 'ms'],
      'change p99, flood': [effects(flooded).p99, 'ms'],
      'change longest, flood': [longest(flooded), 'ms'],
      'livez p99': [spread(livez).p99, 'ms'],
      'livez longest': [most(livez), 'ms'],
      'livez unanswered': [flooded.reduce((sum, phase) => sum + phase.unanswered, 0), ''],
      'memory at rest': [atRest, 'MB'],
      'memory grows by': [most(flooded.map((phase) => phase.peakMB)) - atRest, 'MB'],
      'loop delay at rest': [most(quiet.map((phase) => phase.loopDelay)), 'ms'],
      'loop delay, flood': [most(flooded.map((phase) => phase.loopDelay)), 'ms'],
      'CPU at rest': [most(quiet.map((phase) => phase.cpuShare)), '%'],
      'CPU, flood': [most(flooded.map((phase) => phase.cpuShare)), '%'],
    },
  );
}

if (import.meta.main) {
  const [task] = taskOf<[Task]>(process.argv);
  handBack(await inside(task));
}
