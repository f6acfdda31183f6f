import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { families } from '../../src/model/ip.ts';
import { addressBooks } from '../contract/address-book.ts';
import { Cluster } from '../contract/cluster.ts';
import type { Landscape } from '../contract/landscape.ts';
import {
  type NodeState,
  type NumberedService,
  serviceObject,
  sliceObjects,
  zones,
} from '../contract/objects.ts';
import type { ServiceSpec } from '../contract/story.ts';
import { Conversations } from './conversations.ts';
import { type Descriptors, descriptorsOf } from './descriptors.ts';
import { Dice } from './dice.ts';
import { Ledger } from './ledger.ts';
import { Model } from './model/model.ts';
import { patience } from './model/tolerances.ts';
import { randomEndpoints, randomService } from './random-service.ts';
import { Timeline } from './timeline.ts';
import { Traffic } from './traffic.ts';

/** Services that come and go. */
const SERVICES = 16;

/** Sessions of UDP in userspace mode end soon, so that they do not count as descriptors that were left open. */
const setting = { udpIdleTimeout: '1s' };

/** What a process takes of the machine. */
export interface Size {
  readonly memoryMB: number;
  readonly descriptors: Descriptors;
}

/** One run: the cluster, the model of it, the traffic, and what operations do to them. */
export class Run {
  readonly cluster: Cluster;
  readonly model: Model;
  readonly ledger: Ledger;
  readonly timeline: Timeline;
  readonly dice: Dice;
  readonly conversations: Conversations;
  readonly #traffic: Traffic;
  readonly #services: readonly number[];
  readonly #zoneMarker: NumberedService;
  #clockShiftMs = 0;

  static async open(
    mode: string,
    seed: number,
    landscape: Landscape,
    timeline = new Timeline(),
  ): Promise<Run> {
    return new Run(await Cluster.open(mode, families, landscape), seed, timeline);
  }

  private constructor(cluster: Cluster, seed: number, timeline: Timeline) {
    this.cluster = cluster;
    this.timeline = timeline;
    this.dice = new Dice(seed);
    this.model = new Model(cluster.mode, () => performance.now());
    this.ledger = new Ledger(this.model, timeline);
    this.#services = Array.from({ length: SERVICES }, () => cluster.number({ endpoints: [] }).n);
    const [here, there] = [zones.here, zones.there];
    this.#zoneMarker = cluster.number({
      endpoints: [
        { at: 'A', zoneHints: [here] },
        { at: 'B', zoneHints: [there] },
      ],
    });
    // Traffic makes its choices apart from operations, so that these depend on the seed only.
    this.#traffic = new Traffic(
      cluster.landscape,
      this.model,
      this.ledger,
      new Dice(seed ^ 0x5eed),
      this.#services,
    );
    this.conversations = new Conversations(this.#traffic, this.model, this.ledger);
  }

  /** Starts the program with some services, and then the traffic. */
  async begin(): Promise<void> {
    this.setClock(0);
    const preload = pathToFileURL(join(import.meta.dirname, 'clock-shift.js')).href;
    process.env.KPT_CLOCK_SHIFT = this.cluster.path('clock-shift');
    process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --import ${preload}`.trim();
    this.cluster.put(this.#zoneMarker);
    for (const n of this.#services) if (this.dice.isLucky(0.7)) this.#put(n, randomService(this.dice));
    await this.startProgram();
    this.#traffic.start();
  }

  async close(): Promise<void> {
    await this.#traffic.stop();
    await this.conversations.closeAll();
    await this.cluster.close();
  }

  /** Ends all traffic, after open connections were asked once more: in userspace mode they take descriptors. */
  async stopTraffic(): Promise<void> {
    await this.#traffic.stop();
    await this.conversations.check();
    await this.conversations.closeAll();
  }

  /** Starts the program and waits until everything put so far is in effect. */
  async startProgram(): Promise<void> {
    const putBy = performance.now();
    await this.cluster.start(setting);
    this.model.settleServices(putBy);
    await this.settleNode();
  }

  /** Puts, changes or deletes one service. */
  async changeService(): Promise<void> {
    const n = this.dice.pick(this.#services);
    const spec = this.model.service(n);
    if (this.cluster.mode === 'ipvs') await this.conversations.closeService(n);
    if (!spec) return this.#put(n, randomService(this.dice));
    const dice = this.dice.below(10);
    if (dice < 2) this.#remove(n, spec);
    else if (dice < 4) this.#put(n, { ...randomService(this.dice), endpoints: spec.endpoints });
    else if (dice < 5) this.#put(n, randomService(this.dice));
    else this.#putEndpoints(n, { ...spec, endpoints: randomEndpoints(this.dice) });
  }

  /** Waits until every change of services so far is in effect. */
  async settle(): Promise<void> {
    const putBy = performance.now();
    await this.cluster.settled({ withinMs: patience.eventMs });
    this.model.settleServices(putBy);
  }

  /**
   * Waits until the kernel holds what the program wants, and nothing is pending. For faults that make the program list
   * again: a list has its objects in the order of their names and its removals last, and a sync may come in between.
   */
  async quiet(): Promise<void> {
    const putBy = performance.now();
    await this.cluster.settled({ withinMs: patience.eventMs });
    await this.cluster.quiet({ withinMs: patience.eventMs });
    this.model.settleServices(putBy);
  }

  /** Changes the Node object; resolves at once. */
  changeNode(state: NodeState): void {
    this.model.setNode({ ...this.model.node, ...state });
    this.cluster.changeNode(state);
  }

  /** Waits until the program follows the zone of the Node object: that comes over another watch than services. */
  async settleNode(): Promise<void> {
    const putBy = performance.now();
    const wanted = (this.model.node.zone ?? zones.here) === zones.here ? 'A' : 'B';
    const pod = this.cluster.landscape.host('pod');
    const isFollowed = async () => {
      const asked = families.map((family) => {
        const address = addressBooks[family].service(this.#zoneMarker.n).clusterIP;
        return pod.ask({ address, port: 80, timeoutMs: 500 });
      });
      return (await Promise.all(asked)).every(
        (outcome) => outcome.kind === 'answered' && outcome.by === wanted,
      );
    };
    await this.cluster.eventually('the zone of the node is followed', isFollowed, {
      withinMs: patience.eventMs,
    });
    this.model.settleNode(putBy);
  }

  /** Sets the wall clock of the program this much ahead of the machine's. */
  setClock(shiftMs: number): void {
    this.#clockShiftMs = shiftMs;
    writeFileSync(this.cluster.path('clock-shift'), String(shiftMs));
  }

  get clockShiftMs(): number {
    return this.#clockShiftMs;
  }

  /** What the program takes now. */
  size(): Size {
    const { pid } = this.cluster.program;
    const [, kB = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return { memoryMB: Number(kB) / 1024, descriptors: descriptorsOf(pid) };
  }

  #put(n: number, spec: ServiceSpec): void {
    this.timeline.note(`put service-${n} ${JSON.stringify(spec)}`);
    this.model.setService(n, spec);
    this.cluster.api.put('services', serviceObject({ n, spec }, spec.families ?? families));
    this.#putSlices(n, spec);
  }

  #putEndpoints(n: number, spec: ServiceSpec): void {
    this.timeline.note(`put endpoints of service-${n} ${JSON.stringify(spec.endpoints)}`);
    this.model.setEndpoints(n, spec.endpoints);
    this.#putSlices(n, spec);
  }

  /** Slices are in both families, also if the service is not: those of before never stay. */
  #putSlices(n: number, spec: ServiceSpec): void {
    for (const slice of sliceObjects({ n, spec }, families)) this.cluster.api.put('endpointSlices', slice);
  }

  #remove(n: number, spec: ServiceSpec): void {
    this.timeline.note(`delete service-${n}`);
    this.model.setService(n, undefined);
    this.cluster.remove({ n, spec });
  }
}
