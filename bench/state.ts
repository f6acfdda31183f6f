import { fork } from 'node:child_process';
import { decoders } from '../src/kube/decode.ts';
import { systemClock } from '../src/lib/clock.ts';
import { createIntern } from '../src/lib/intern.ts';
import { TimeSlice } from '../src/lib/time-slice.ts';
import type { EndpointSliceObject, ServiceObject } from '../src/model/objects.ts';
import { Planner } from '../src/plan/planner.ts';
import { FamilyState } from '../src/state/family-state.ts';
import type { Bench } from './part.ts';
import { parseSizes } from './programs/figures.ts';
import { measurements, sizeText } from './report/measurement.ts';

/** Endpoints that the control plane puts into one slice. */
const sliceSize = 100;
/** Services, with their slices, that a source delivers before it yields to the event loop. */
const batchSize = 500;
/** Services and slices that the proxier applies between two checks of its time slice. */
const stepSize = 100;
const changes = 2_000;
const defaultSizes = '1000x3,10000x10,50000x10,1x100000';
const context = { nodeName: 'node-0', zone: 'zone-0', allowExternalIPs: true };

interface Result {
  readonly loadMs: number;
  readonly stallMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly heapMB: number;
  readonly rssMB: number;
}

/** Measures objects → state → plans at several sizes, each in its own process, so that its memory can be measured. */
export async function run({ sizes = defaultSizes, step, record }: Bench): Promise<void> {
  for (const size of parseSizes(sizes, 1)) {
    step(sizeText(size));
    const result = await measureApart(size.services, size.endpoints);
    record(
      measurements(
        { part: 'state', topic: 'objects to decisions', program: 'kube-proxy-ts', size },
        {
          load: [result.loadMs, 'ms'],
          'longest stall': [result.stallMs, 'ms'],
          'one change p50': [result.p50Ms * 1000, 'µs'],
          'one change p99': [result.p99Ms * 1000, 'µs'],
          'heap after load': [result.heapMB, 'MB'],
          'resident after load': [result.rssMB, 'MB'],
        },
      ),
    );
  }
}

function measureApart(services: number, endpoints: number): Promise<Result> {
  const child = fork(import.meta.filename, [String(services), String(endpoints)], {
    // The flag of bin/kube-proxy, and one that lets this program start a garbage collection.
    execArgv: ['--max-semi-space-size=2', '--expose-gc'],
  });
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as Result));
    child.once('exit', (code) => reject(new Error(`ended with code ${code} before it measured anything`)));
  });
}

async function measure(services: number, endpoints: number): Promise<Result> {
  const world = new World(services, endpoints);
  const load = await world.load();
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  const times: number[] = [];
  for (let i = 0; i < changes; i++) times.push(await world.change(i * 7_919));
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? 0;
  return { ...load, p50Ms: at(0.5), p99Ms: at(0.99), heapMB: heapUsed / 1e6, rssMB: rss / 1e6 };
}

/** A family with its planner, and the objects that a source would hold. */
class World {
  readonly #services: number;
  readonly #endpoints: number;
  readonly #slicesPerService: number;
  #version = 0;
  readonly #intern = createIntern();
  readonly #state = new FamilyState({
    family: 'IPv4',
    nodeName: context.nodeName,
    startTime: 0,
    onProblem: (problem) => {
      throw new Error(`${problem.field}: ${problem.value} ${problem.fault}`);
    },
  });
  readonly #planner = new Planner();
  readonly #objects: { readonly service: ServiceObject; readonly slices: readonly EndpointSliceObject[] }[] =
    [];

  constructor(services: number, endpoints: number) {
    this.#services = services;
    this.#endpoints = endpoints;
    this.#slicesPerService = Math.ceil(endpoints / sliceSize);
  }

  /** Measures state and plan only, without decoding. */
  async load(): Promise<{ loadMs: number; stallMs: number }> {
    const turns: number[] = [];
    for (let from = 0; from < this.#services; from += batchSize) {
      const batch = Array.from({ length: Math.min(batchSize, this.#services - from) }, (_, i) => ({
        service: this.#decodeService(from + i),
        slices: this.#decodeSlices(from + i),
      }));
      this.#objects.push(...batch);
      turns.push(
        elapsed(() => {
          for (const { service, slices } of batch) {
            this.#state.updateService(undefined, service);
            for (const slice of slices) this.#state.updateSlice(slice, false);
          }
        }),
      );
      await nextTurn();
    }
    turns.push(...(await this.#firstSync()));
    if (this.#planner.plans.size !== this.#services) throw new Error('services went missing');
    return { loadMs: turns.reduce((sum, ms) => sum + ms, 0), stallMs: Math.max(...turns) };
  }

  /** One endpoint of one slice stops being ready, or becomes ready again. */
  async change(index: number): Promise<number> {
    const slice = this.#decodeSlice(index % this.#services, index % this.#slicesPerService, ++this.#version);
    const start = performance.now();
    this.#state.updateSlice(slice, false);
    await this.#sync();
    return performance.now() - start;
  }

  /** Applies and plans in time slices, as the program does at its start; returns the duration of each slice. */
  async #firstSync(): Promise<number[]> {
    const timeSlice = new MeasuredSlice(systemClock);
    while (this.#state.applyPending(stepSize)) if (timeSlice.isSpent) await timeSlice.yield();
    const delta = this.#state.takeDelta();
    await this.#planner.apply(delta.changed, this.#state, context, timeSlice);
    this.#state.acknowledge(delta);
    await timeSlice.yield();
    return timeSlice.turns;
  }

  async #sync(): Promise<void> {
    const delta = this.#state.takeDelta();
    await this.#planner.apply(delta.changed, this.#state, context, new TimeSlice(systemClock));
    this.#state.acknowledge(delta);
  }

  #decodeService(i: number): ServiceObject {
    const clusterIP = `10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;
    const text = JSON.stringify({
      metadata: { namespace: `ns-${i % 100}`, name: `service-${i}`, resourceVersion: String(i) },
      spec: {
        type: 'ClusterIP',
        clusterIP,
        clusterIPs: [clusterIP],
        ipFamilies: ['IPv4'],
        ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 }],
      },
    });
    return decoders.services(JSON.parse(text), this.#intern);
  }

  #decodeSlices(i: number): EndpointSliceObject[] {
    return Array.from({ length: this.#slicesPerService }, (_, part) => this.#decodeSlice(i, part, 0));
  }

  #decodeSlice(i: number, part: number, version: number): EndpointSliceObject {
    const length = Math.min(sliceSize, this.#endpoints);
    const endpoints = Array.from({ length }, (_, n) => {
      const number = i * this.#endpoints + part * sliceSize + n;
      return {
        addresses: [`10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`],
        conditions: { ready: n > 0 || version % 2 === 0, serving: true, terminating: false },
        nodeName: `node-${number % 1000}`,
        zone: `zone-${number % 3}`,
        targetRef: { kind: 'Pod', namespace: `ns-${i % 100}`, name: podName(i, number) },
      };
    });
    const text = JSON.stringify({
      metadata: {
        namespace: `ns-${i % 100}`,
        name: `service-${i}-${part}`,
        resourceVersion: `${i}-${version}`,
        labels: { 'kubernetes.io/service-name': `service-${i}` },
      },
      addressType: 'IPv4',
      endpoints,
      ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    });
    return decoders.endpointSlices(JSON.parse(text), this.#intern);
  }
}

/** The name that a ReplicaSet would give: that of the Deployment, a hash, and five characters that look random. */
function podName(service: number, pod: number): string {
  const letters = (of: number, length: number) =>
    ((of * 2_654_435_761) >>> 0).toString(36).padStart(length, 'x').slice(-length);
  return `service-${service}-7d4b9${letters(service, 5)}-${letters(pod, 5)}`;
}

/** Records the duration of the work before each yield. */
class MeasuredSlice extends TimeSlice {
  readonly turns: number[] = [];
  #start = performance.now();

  override async yield(): Promise<void> {
    this.turns.push(performance.now() - this.#start);
    await super.yield();
    this.#start = performance.now();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function elapsed(work: () => void): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}

if (import.meta.main) {
  const [services = 0, endpoints = 0] = process.argv.slice(2).map(Number);
  process.send?.(await measure(services, endpoints));
}
