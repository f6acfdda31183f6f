import type { Endpoint } from '../model/endpoint.ts';
import type { Family } from '../model/ip.ts';
import type { ObjectProblem } from '../model/object-problem.ts';
import type { EndpointSliceObject, ServiceObject } from '../model/objects.ts';
import type { Placements } from '../model/placement.ts';
import { type ServicePort, sameServicePort } from '../model/service-port.ts';
import { type ServiceDefaults, servicePortsOf } from '../model/service-ports.ts';
import { type DepartedEndpoints, Departures } from './departures.ts';
import { type Delta, Ledger } from './ledger.ts';
import { placementsOf } from './placements.ts';
import { isBetweenNames, Renames, type ServiceChange } from './renames.ts';
import { ServiceRecord, type SliceChange } from './service-record.ts';
import { SliceTracker, takeFirst } from './slice-tracker.ts';

export interface FamilyStateOptions {
  readonly family: Family;
  /** Endpoints with this node name are local. */
  readonly nodeName: string;
  /** Milliseconds since the Unix epoch; changes triggered before it are not measured. */
  readonly startTime: number;
  /** When absent, nothing beyond upstream's behaviour. */
  readonly defaults?: ServiceDefaults;
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
 * Services and endpoints of one family. Objects are read as they arrive, but the queries return them only after
 * `takeDelta` or `applyPending`: the state does not change during a sync.
 *
 * A delta holds all changes since the last acknowledged one. After a failed sync do not acknowledge it; the next
 * `takeDelta` returns its changes again.
 */
export class FamilyState {
  readonly family: Family;
  readonly #onProblem: (problem: ObjectProblem) => void;
  readonly #defaults: ServiceDefaults | undefined;
  readonly #departures = new Departures();
  readonly #ledger = new Ledger();
  readonly #slices: SliceTracker;
  /** New ports of Services that wait to be applied. */
  readonly #pendingServices = new Map<string, readonly ServicePort[]>();
  readonly #renames = new Renames();

  readonly #records = new Map<string, ServiceRecord>();
  readonly #healthCheckPorts = new Map<string, number>();
  readonly #localReadyCounts = new Map<string, number>();
  #totalEndpoints = 0;

  constructor({ family, nodeName, startTime, defaults, onProblem }: FamilyStateOptions) {
    this.family = family;
    this.#defaults = defaults;
    this.#onProblem = onProblem;
    this.#slices = new SliceTracker({ family, nodeName, onProblem }, startTime, this.#ledger);
  }

  /** Takes an added, changed or (without `object`) deleted Service; returns whether a Service waits to be applied. */
  updateService(previous: ServiceObject | undefined, object: ServiceObject | undefined): boolean {
    const subject = object ?? previous;
    if (subject) {
      const name = `${subject.namespace}/${subject.name}`;
      const applied = this.#records.get(name)?.ports ?? noPorts;
      // Reading an unchanged object again would only report its problems again.
      const isResync = previous === object && (applied.length > 0 || this.#pendingServices.has(name));
      if (!isResync) this.#updatePorts(name, applied, object ? this.#readPorts(object, applied) : noPorts);
    }
    return this.#pendingServices.size > 0;
  }

  /** Takes an added, changed or removed slice of any address type; returns whether this family changed. */
  updateSlice(object: EndpointSliceObject, removed: boolean): boolean {
    return this.#slices.update(object, removed);
  }

  /**
   * Applies up to `limit` pending slices and as many Services; returns whether more are pending. Call it with a limit
   * before `takeDelta` to spread a large load over several turns of the event loop.
   */
  applyPending(limit = Number.POSITIVE_INFINITY): boolean {
    const changes = new Map<string, ServiceChange>();
    for (const [name, slices] of this.#slices.takeChanges(limit)) changes.set(name, { slices });
    for (const [name, ports] of takeFirst(this.#pendingServices, limit)) {
      changes.set(name, { ...changes.get(name), ports });
    }
    for (const [name, change] of changes) {
      const all = this.#renames.joined(name, change);
      const record = this.#records.get(name);
      if (record && isBetweenNames(record, all)) this.#renames.hold(name, all);
      else {
        this.#renames.release(name);
        this.#apply(name, all);
      }
    }
    return this.#pendingServices.size > 0 || this.#slices.hasPending;
  }

  /**
   * Applies everything that is pending and returns every change that is not acknowledged. With a time, by the monotonic
   * clock, a Service that is renaming a port stays as it was until all of its slices have the same name, for a second at
   * most.
   */
  takeDelta(now?: number): Delta {
    this.applyPending();
    for (const [name, change] of this.#renames.takeOverdue(now)) this.#apply(name, change);
    return this.#ledger.take();
  }

  /** When a Service has waited for its slices, or they for it, for too long; undefined when none waits. */
  get renameDueAt(): number | undefined {
    return this.#renames.dueAt;
  }

  /** Call when the delta is programmed: later deltas no longer contain its changes. */
  acknowledge(delta: Delta): void {
    this.#ledger.acknowledge(delta);
  }

  /** `namespace/name` of every Service with a port or a slice. */
  serviceNames(): Iterable<string> {
    return this.#records.keys();
  }

  /** The Service of this `namespace/name`; undefined when it has neither a port nor a slice. */
  service(name: string): ServiceView | undefined {
    return this.#records.get(name);
  }

  /** Where the endpoints of a service port run; `known` when that earlier answer still holds. */
  placements(port: ServicePort, known?: Placements): Placements {
    const slices = this.#records.get(`${port.namespace}/${port.name}`)?.sliceObjects() ?? [];
    return placementsOf(slices, port, known);
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

  /**
   * TCP endpoints that are gone, of Services that want resets for their connections. `now` is by the monotonic clock.
   * Call it after `takeDelta`.
   */
  departed(now: number): DepartedEndpoints {
    this.#departures.settle(now);
    return this.#departures.current;
  }

  /** When the departed endpoints change without an event; undefined when they do not. */
  get departedDueAt(): number | undefined {
    return this.#departures.dueAt;
  }

  /** Number of Services that wait to be applied. */
  get pendingServices(): number {
    return this.#pendingServices.size + this.#renames.services;
  }

  /** Number of slice changes since the last take, and of slices that wait for their Service. */
  get pendingSlices(): number {
    return this.#slices.pendingChanges + this.#renames.slices;
  }

  /** Number of events about slices of this family with a Service name, changes or not. */
  get sliceEvents(): number {
    return this.#slices.events;
  }

  #readPorts(object: ServiceObject, applied: readonly ServicePort[]): readonly ServicePort[] {
    const { ports, problems } = servicePortsOf(object, this.family, this.#defaults);
    for (const problem of problems) this.#onProblem(problem);
    // Reuse equal records: plans are compared by reference.
    return ports.map((port) => applied.find((known) => sameServicePort(known, port)) ?? port);
  }

  #updatePorts(name: string, applied: readonly ServicePort[], ports: readonly ServicePort[]): void {
    const same = applied.length === ports.length && ports.every((port) => applied.includes(port));
    this.#renames.dropPorts(name);
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

  #apply(name: string, { ports, slices }: ServiceChange): void {
    const record = this.#recordOf(name);
    if (slices) {
      this.#noteDepartures(record, slices);
      record.apply(slices);
    }
    if (ports) this.#setPorts(record, ports);
    this.#settle(record);
  }

  #setPorts(record: ServiceRecord, ports: readonly ServicePort[]): void {
    record.ports = ports;
    if (ports.length === 0) return;
    record.resetsDeparted = ports.some(({ resetsDeparted }) => resetsDeparted);
    if (record.resetsDeparted && !this.#departures.isActive) {
      this.#departures.activate(this.#records.values().flatMap(({ slices }) => slices));
    }
  }

  #noteDepartures({ resetsDeparted }: ServiceRecord, { removed, added }: SliceChange): void {
    for (const slice of removed) this.#departures.remove(slice, resetsDeparted);
    for (const slice of added) this.#departures.add(slice);
  }

  /** Updates counts and health check ports after a record has changed. */
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
