import type { Endpoint } from '../model/endpoint.ts';
import type { Family } from '../model/ip.ts';
import type { ObjectProblem } from '../model/object-problem.ts';
import type { EndpointSliceObject, ServiceObject } from '../model/objects.ts';
import { type ServicePort, sameServicePort } from '../model/service-port.ts';
import { servicePortsOf } from '../model/service-ports.ts';
import { type Delta, Ledger } from './ledger.ts';
import { ServiceRecord } from './service-record.ts';
import { SliceTracker } from './slice-tracker.ts';
import { takeFirst } from './take-first.ts';

export interface FamilyStateOptions {
  readonly family: Family;
  /** The name, in lower case, that marks endpoints as local. */
  readonly nodeName: string;
  /** Milliseconds since the Unix epoch; changes triggered before it are not measured. */
  readonly startTime: number;
  readonly onProblem: (problem: ObjectProblem) => void;
}

/** The ports of one Service and the endpoints of each. */
export interface ServiceView {
  readonly ports: readonly ServicePort[];
  /** Sorted by id, usable or not. */
  endpoints(port: Pick<ServicePort, 'portName' | 'protocol'>): readonly Endpoint[];
}

const noPorts: readonly ServicePort[] = [];

/**
 * Services and endpoints of one family. Events are read as they arrive and wait until they are taken. What the
 * queries answer therefore moves only in `takeDelta` and `applyPending`, and stays still while a sync is under way.
 *
 * A delta holds everything since the last one that was acknowledged, so a failed sync loses nothing: do not
 * acknowledge it, and the next take has it all.
 */
export class FamilyState {
  readonly family: Family;
  readonly #onProblem: (problem: ObjectProblem) => void;
  readonly #ledger = new Ledger();
  readonly #slices: SliceTracker;
  /** Ports that wait to be applied, by Service. */
  readonly #pendingServices = new Map<string, readonly ServicePort[]>();

  readonly #records = new Map<string, ServiceRecord>();
  readonly #healthCheckPorts = new Map<string, number>();
  readonly #localReadyCounts = new Map<string, number>();
  #totalEndpoints = 0;

  constructor({ family, nodeName, startTime, onProblem }: FamilyStateOptions) {
    this.family = family;
    this.#onProblem = onProblem;
    this.#slices = new SliceTracker({ family, nodeName, onProblem }, startTime, this.#ledger);
  }

  /** An added, changed or (without `object`) deleted Service. True when any Service waits to be applied. */
  updateService(previous: ServiceObject | undefined, object: ServiceObject | undefined): boolean {
    const subject = object ?? previous;
    if (subject) {
      const name = `${subject.namespace}/${subject.name}`;
      const applied = this.#records.get(name)?.ports ?? noPorts;
      // A resync repeats every object; reading it again would only repeat its problems.
      const isResync = previous === object && (applied.length > 0 || this.#pendingServices.has(name));
      if (!isResync) this.#updatePorts(name, applied, object ? this.#readPorts(object, applied) : noPorts);
    }
    return this.#pendingServices.size > 0;
  }

  /** An added, changed or removed slice of any address type. True when it is a change for this family. */
  updateSlice(object: EndpointSliceObject, removed: boolean): boolean {
    return this.#slices.update(object, removed);
  }

  /**
   * Applies up to `limit` of the Services and slices that wait, and says whether more do. Called with a limit
   * before `takeDelta`, it spreads a large load over several turns of the event loop.
   */
  applyPending(limit = Number.POSITIVE_INFINITY): boolean {
    const touched = new Set<ServiceRecord>();
    for (const [name, ports] of takeFirst(this.#pendingServices, limit)) {
      const record = this.#recordOf(name);
      touched.add(record);
      record.ports = ports;
    }
    for (const [name, change] of this.#slices.takeChanges(limit)) {
      const record = this.#recordOf(name);
      touched.add(record);
      record.apply(change);
    }
    for (const record of touched) this.#settle(record);
    return this.#pendingServices.size > 0 || this.#slices.hasPending;
  }

  /** Applies everything that waits and hands out every change that is not acknowledged. */
  takeDelta(): Delta {
    this.applyPending();
    return this.#ledger.take();
  }

  /** The delta is programmed: what it holds need not be handed out again. */
  acknowledge(delta: Delta): void {
    this.#ledger.acknowledge(delta);
  }

  /** `namespace/name` of everything that has a port or a slice. */
  serviceNames(): Iterable<string> {
    return this.#records.keys();
  }

  /** The Service of that `namespace/name`; undefined when it has neither a port nor a slice. */
  service(name: string): ServiceView | undefined {
    return this.#records.get(name);
  }

  /** Health check node ports, by `namespace/name`. */
  healthCheckPorts(): ReadonlyMap<string, number> {
    return this.#healthCheckPorts;
  }

  /** How many addresses on this node have a ready endpoint, by `namespace/name`; absent means none. */
  localReadyCounts(): ReadonlyMap<string, number> {
    return this.#localReadyCounts;
  }

  /** Endpoints over all service ports, usable or not. */
  get totalEndpoints(): number {
    return this.#totalEndpoints;
  }

  /** Services that wait to be applied. */
  get pendingServices(): number {
    return this.#pendingServices.size;
  }

  /** Slice changes since the last take. */
  get pendingSlices(): number {
    return this.#slices.pendingChanges;
  }

  /** Events so far about slices of this family that name a Service, changes or not. */
  get sliceEvents(): number {
    return this.#slices.events;
  }

  #readPorts(object: ServiceObject, applied: readonly ServicePort[]): readonly ServicePort[] {
    const { ports, problems } = servicePortsOf(object, this.family);
    for (const problem of problems) this.#onProblem(problem);
    // An equal record keeps its identity: whoever compares plans compares pointers.
    return ports.map((port) => applied.find((known) => sameServicePort(known, port)) ?? port);
  }

  #updatePorts(name: string, applied: readonly ServicePort[], ports: readonly ServicePort[]): void {
    const same = applied.length === ports.length && ports.every((port) => applied.includes(port));
    if (same) this.#pendingServices.delete(name);
    else this.#pendingServices.set(name, ports);
  }

  #recordOf(name: string): ServiceRecord {
    const known = this.#records.get(name);
    if (known) return known;
    const record = new ServiceRecord(name);
    this.#records.set(name, record);
    return record;
  }

  /** Brings everything that is kept per Service in line with a record that changed. */
  #settle(record: ServiceRecord): void {
    this.#ledger.recordChange(record.name);
    const count = record.countEndpoints();
    this.#totalEndpoints += count - record.counted;
    record.counted = count;
    setOrDelete(this.#healthCheckPorts, record.name, record.ports[0]?.healthCheckNodePort ?? 0);
    setOrDelete(this.#localReadyCounts, record.name, record.countLocalReady());
    if (record.isEmpty) this.#records.delete(record.name);
  }
}

function setOrDelete(map: Map<string, number>, key: string, value: number): void {
  if (value === 0) map.delete(key);
  else map.set(key, value);
}
