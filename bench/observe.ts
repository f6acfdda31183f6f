/**
 * Measures what it costs to observe traffic in nftables mode: new connections while nobody looks, with metrics of
 * Services, with somebody who watches flows; and a list of many flows. Needs root. Everything happens in network
 * namespaces, which are removed at the end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_PATH } from '../src/inspect/api.ts';
import type { TrafficReport } from '../src/inspect/traffic-api.ts';
import { type FlowToMake, makeFlows } from '../test/kernel/flow-maker.ts';
import { makeConnections } from './observe/connections.ts';
import type { Bench } from './part.ts';
import { endpointPort, listenerIP, type Size, serviceIP } from './programs/cluster.ts';
import { parseSizes } from './programs/figures.ts';
import { withProgram } from './programs/measure.ts';
import { handBack, inNamespace, taskOf } from './programs/namespace.ts';
import { Probe } from './programs/probe.ts';
import { cpuSince, ownProgram, type Program } from './programs/program.ts';
import { type Measurement, measurements, sizeText } from './report/measurement.ts';

const part = 'observe';
const mode = 'nftables';
const defaultSizes = '10000x10';
const perSecond = 5_000;
const cpuSeconds = 6;
const stallSeconds = 4;
const scrapeMs = 5_000;
const settledMs = 3_000;
const manyFlows = 200_000;
const metrics = 'http://127.0.0.1:10249';

/** Who looks while connections are made. */
const looks = ['nobody', 'service metrics', 'flows -w', 'top every second'] as const;
type Look = (typeof looks)[number];

interface Task {
  readonly size: Size;
  readonly look: Look | 'list';
}

export async function run(bench: Bench): Promise<void> {
  for (const size of parseSizes(bench.sizes ?? defaultSizes)) {
    for (const look of [...looks, 'list'] as const) {
      bench.step(
        `${look === 'list' ? `a list of ${manyFlows} flows` : `observed by ${look}`}, ${sizeText(size)}`,
      );
      bench.record(await inNamespace(import.meta.filename, [{ size, look } satisfies Task]));
    }
  }
}

async function inside({ size, look }: Task): Promise<Measurement[]> {
  const listener = createServer((socket) => socket.on('error', () => socket.destroy()).end());
  listener.listen({ port: endpointPort, host: listenerIP, backlog: 4096 });
  const probe = new Probe();
  const args = look === 'service metrics' ? ['--service-metrics=connections,bytes'] : [];
  try {
    return await withProgram({ path: ownProgram, mode, args }, size, probe, async (_cluster, program) => {
      await sleep(settledMs);
      await probe.longestAnswer();
      return look === 'list' ? measureList(size, probe) : measureConnections(size, look, program, probe);
    });
  } finally {
    await probe.close();
    listener.close();
  }
}

async function measureConnections(
  size: Size,
  look: Look,
  program: Program,
  probe: Probe,
): Promise<Measurement[]> {
  const ip = serviceIP(size.services - 1);
  const looking = new Looking(look);
  await looking.start();
  await makeConnections(ip, perSecond, 2);
  const before = program.cpu();
  const load = await makeConnections(ip, perSecond, cpuSeconds);
  const { own, kernel } = cpuSince(before, program.cpu());
  await probe.watchHealth();
  await makeConnections(ip, perSecond, stallSeconds);
  const stallMs = await probe.longestAnswer();
  const lost = look.startsWith('nobody') ? 0 : (await traffic()).lostEvents;
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
      'longest stall': [stallMs, 'ms'],
      memory: [program.memory().now, 'MB'],
    },
  );
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

/** Somebody who looks, in a process of their own where they read much. */
class Looking {
  readonly #look: Look;
  #reader: ChildProcess | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(look: Look) {
    this.#look = look;
  }

  async start(): Promise<void> {
    if (this.#look === 'flows -w') {
      const url = `${metrics}${API_PATH}flows?watch=true`;
      const script = `for await (const piece of (await fetch('${url}')).body) void piece;`;
      this.#reader = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' });
      await sleep(settledMs);
    }
    if (this.#look === 'service metrics') {
      this.#timer = setInterval(() => void fetch(`${metrics}/metrics`).then((page) => page.text()), scrapeMs);
    }
    if (this.#look === 'top every second') this.#timer = setInterval(() => void traffic(), 1000);
    if (!this.#look.startsWith('nobody')) await traffic();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    if (!this.#reader) return;
    this.#reader.kill();
    await once(this.#reader, 'close');
  }
}

if (import.meta.main) {
  const [task] = taskOf<[Task]>(process.argv);
  handBack(await inside(task));
}
