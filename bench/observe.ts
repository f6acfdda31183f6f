/**
 * Measures what it costs to observe traffic in nftables mode: new connections and changes while nobody looks, with
 * metrics of Services, with somebody who watches flows, with the page open; and a list of many flows. Needs root. Everything happens in network
 * namespaces, which are removed at the end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_PATH } from '../src/inspect/api.ts';
import type { TrafficReport } from '../src/inspect/traffic-api.ts';
import { type FlowToMake, makeFlows } from '../test/kernel/flow-maker.ts';
import { Connections } from './observe/connections.ts';
import type { Bench } from './part.ts';
import { type Cluster, endpointPort, listenerIP, type Size, serviceIP } from './programs/cluster.ts';
import { parseSizes } from './programs/figures.ts';
import { changeEffect, patiently, type Spread, spread, withProgram } from './programs/measure.ts';
import { handBack, inNamespace, taskOf } from './programs/namespace.ts';
import { Probe } from './programs/probe.ts';
import { cpuSince, ownProgram, type Program } from './programs/program.ts';
import { type Measurement, measurements, sizeText } from './report/measurement.ts';
import { median } from './report/median.ts';

const part = 'observe';
const mode = 'nftables';
const defaultSizes = '10000x10';
const perSecond = 5_000;
const rounds = 3;
const warmUpSeconds = 1;
const cpuSeconds = 5;
const changeSeconds = 4;
const betweenChangesMs = 10;
const settledMs = 2_000;
const manyFlows = 200_000;
const metrics = 'http://127.0.0.1:10249';

/** Who looks while connections are made. */
const looks = ['nobody', 'service metrics', 'flows -w', 'page'] as const;
type Look = (typeof looks)[number];

/** Scripts of the readers. */
const readers: Readonly<Record<Look, string>> = {
  nobody: readEvery(`${metrics}/metrics`, 5_000),
  'service metrics': readEvery(`${metrics}/metrics`, 5_000),
  'flows -w': readEvery(`${metrics}${API_PATH}flows?watch=true`, 1_000),
  // What the page asks for.
  page: readEvery(`${metrics}${API_PATH}traffic`, 1_000),
};

function readEvery(url: string, ms: number): string {
  return `const read = async () => { for await (const piece of (await fetch('${url}')).body) void piece; };
for (;;) { await read(); await new Promise((resolve) => setTimeout(resolve, ${ms})); }`;
}

interface Task {
  readonly size: Size;
  readonly look: Look | 'list';
}

export async function run(bench: Bench): Promise<void> {
  for (const size of parseSizes(bench.sizes ?? defaultSizes)) {
    const all: Measurement[] = [];
    for (let round = 1; round <= rounds; round++) {
      for (const look of looks) {
        bench.step(`round ${round} of ${rounds}, observed by ${look}, ${sizeText(size)}`);
        all.push(...(await inNamespace(import.meta.filename, [{ size, look } satisfies Task])));
      }
    }
    bench.record(medians(all));
    bench.step(`a list of ${manyFlows} flows, ${sizeText(size)}`);
    bench.record(await inNamespace(import.meta.filename, [{ size, look: 'list' } satisfies Task]));
  }
}

/** Disturbances of the machine come and go: the median of the rounds is compared. */
function medians(all: readonly Measurement[]): Measurement[] {
  const groups = Map.groupBy(all, ({ program, metric }) => `${program} ${metric}`);
  return [...groups.values()].flatMap((group) => {
    const value = median(group.map((one) => one.value));
    return group.slice(0, 1).map((one) => ({ ...one, value }));
  });
}

async function inside({ size, look }: Task): Promise<Measurement[]> {
  // So that each port is used once.
  writeFileSync('/proc/sys/net/ipv4/ip_local_port_range', '1024 65535');
  const connections = await Connections.listen(listenerIP, endpointPort);
  const probe = new Probe();
  const args = look === 'service metrics' ? ['--service-metrics=connections,bytes'] : [];
  try {
    return await withProgram({ path: ownProgram, mode, args }, size, probe, async (cluster, program) => {
      await sleep(settledMs);
      await probe.longestAnswer();
      if (look === 'list') return measureList(size, probe);
      return measureConnections({ size, look, cluster, program, probe, connections });
    });
  } finally {
    await probe.close();
    connections.close();
  }
}

interface Scene {
  readonly size: Size;
  readonly look: Look;
  readonly cluster: Cluster;
  readonly program: Program;
  readonly probe: Probe;
  readonly connections: Connections;
}

async function measureConnections(scene: Scene): Promise<Measurement[]> {
  const { size, look, program, probe, connections } = scene;
  const make = (seconds: number) => connections.make(serviceIP(size.services - 1), 80, perSecond, seconds);
  const looking = new Looking(look);
  await looking.start();
  await make(warmUpSeconds);
  const before = program.cpu();
  const load = await make(cpuSeconds);
  const { own, kernel } = cpuSince(before, program.cpu());
  await probe.watchHealth();
  const [effect] = await Promise.all([measureChanges(scene), make(changeSeconds)]);
  const stallMs = await probe.longestAnswer();
  const lost = look === 'nobody' || look === 'service metrics' ? 0 : (await traffic()).lostEvents;
  await looking.stop();
  const micros = (ms: number) => (ms * 1000) / load.connections;
  return measurements(
    { part, topic: 'new connections', program: look, size },
    {
      'connections/s': [load.perSecond, ''],
      'failed connections': [load.failed, ''],
      'CPU of both ends': [micros(load.cpuMs), 'µs each'],
      'CPU of the proxy': [micros(own + kernel), 'µs each'],
      'CPU in all': [micros(load.cpuMs + own + kernel), 'µs each'],
      'lost events': [lost, ''],
      'effect of a change, p50': [effect.p50, 'ms'],
      'effect of a change, p99': [effect.p99, 'ms'],
      'longest stall': [stallMs, 'ms'],
      memory: [program.memory().now, 'MB'],
    },
  );
}

/** Replaces endpoints while connections are made. */
async function measureChanges({ size, cluster, program, probe }: Scene): Promise<Spread> {
  const effects: number[] = [];
  const begun = performance.now();
  const change = async (who: 'listener' | 'one-refusing', outcome: 'connected' | 'refused') => {
    return patiently(program, changeEffect(cluster, probe, size.services - 2, who, outcome));
  };
  await change('listener', 'connected');
  while (performance.now() - begun < (changeSeconds - 1) * 1000) {
    effects.push(await change('one-refusing', 'refused'), await change('listener', 'connected'));
    await sleep(betweenChangesMs);
  }
  return spread(effects);
}

async function measureList(size: Size, probe: Probe): Promise<Measurement[]> {
  await makeFlows(flowsTo(size));
  await traffic();
  await probe.watchHealth();
  const begun = performance.now();
  const answer = await (await fetch(`${metrics}${API_PATH}flows`)).text();
  const seconds = (performance.now() - begun) / 1000;
  const stallMs = await probe.longestAnswer();
  return measurements(
    { part, topic: 'a list of flows', program: 'flows', size },
    {
      flows: [answer.split('\n').length - 2, ''],
      answered: [seconds, 's'],
      'longest stall': [stallMs, 'ms'],
    },
  );
}

function* flowsTo({ services }: Size): Generator<FlowToMake> {
  const bytes = (text: string) => Uint8Array.from(text.split('.').map(Number));
  const addresses = Array.from({ length: Math.min(services, 100) }, (_, i) => bytes(serviceIP(i)));
  for (let i = 0; i < manyFlows; i++) {
    yield {
      client: Uint8Array.of(10, 1, (i >> 16) & 0xff, (i >> 8) & 0xff),
      clientPort: 10_000 + (i % 50_000),
      destination: addresses[i % addresses.length] ?? new Uint8Array(4),
      destinationPort: 80,
      answerer: Uint8Array.of(10, 244, 0, i % 250),
      answererPort: 8080,
      protocol: 6,
    };
  }
}

async function traffic(): Promise<TrafficReport> {
  return (await (await fetch(`${metrics}${API_PATH}traffic`)).json()) as TrafficReport;
}

/** Somebody who looks, in a process of their own. Metrics are read also where they have nothing of Services. */
class Looking {
  readonly #look: Look;
  #reader: ChildProcess | undefined;

  constructor(look: Look) {
    this.#look = look;
  }

  async start(): Promise<void> {
    const args = ['--input-type=module', '-e', readers[this.#look]];
    this.#reader = spawn(process.execPath, args, { stdio: 'ignore' });
    await sleep(settledMs);
  }

  async stop(): Promise<void> {
    if (!this.#reader) return;
    this.#reader.kill();
    await once(this.#reader, 'close');
  }
}

if (import.meta.main) {
  const [task] = taskOf<[Task]>(process.argv);
  handBack(await inside(task));
}
