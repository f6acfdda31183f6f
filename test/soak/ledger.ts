import type { Model } from './model/model.ts';
import { packetText, type SoakPacket } from './model/packet.ts';
import type { Seen } from './model/promise.ts';
import type { Cause } from './model/tolerances.ts';
import type { Timeline } from './timeline.ts';

/** A connection that ended in a way that nothing explains. */
export interface Unexplained {
  readonly operation: string;
  readonly text: string;
}

/** What one kind of fault cost. */
export interface Cost {
  times: number;
  connections: number;
  failed: number;
  /** Milliseconds from the begin of each fault until everything that was put meanwhile was in effect. */
  readonly recoveries: number[];
  /** Milliseconds from the begin of a fault until the last connection began that failed, for faults with such. */
  readonly outages: number[];
}

interface Fault {
  readonly cost: Cost;
  readonly begun: number;
  /** Undefined while it lasts. */
  ended?: number;
  /** Place of its outage among those of its kind; undefined while no connection has failed. */
  outage?: number;
}

/** So many faults are remembered; a connection that takes long ends in a later one than it began in. */
const REMEMBERED = 20;

/** Compares every connection with what the model of the cluster promises, and counts. */
export class Ledger {
  readonly #model: Model;
  readonly #timeline: Timeline;
  connections = 0;
  answered = 0;
  /** Refused or dropped, as the objects promise. */
  refused = 0;
  readonly explained = new Map<Cause, number>();
  readonly unexplained: Unexplained[] = [];
  readonly costs = new Map<string, Cost>();
  readonly conversations = { opened: 0, asked: 0 };
  /** The operation under way. */
  operation = 'the start';
  /** The last faults, the newest first. */
  #faults: Fault[] = [];

  constructor(model: Model, timeline: Timeline) {
    this.#model = model;
    this.#timeline = timeline;
  }

  /** Judges a connection that was made between these times. */
  judge(packet: SoakPacket, seen: Seen, begin: number, end: number): void {
    this.connections++;
    const fault = this.#faultAt(begin);
    if (fault) fault.cost.connections++;
    const promises = this.#model.promises(packet, begin, end);
    if (promises.has(seen)) {
      if (seen === 'REJECT' || seen === 'DROP' || seen === 'RESET') this.refused++;
      else this.answered++;
      return;
    }
    if (fault) countFailed(fault, begin);
    const cause = this.#model.explanation(seen, promises, begin, end);
    if (cause) this.explained.set(cause, (this.explained.get(cause) ?? 0) + 1);
    else
      this.fail(`${packetText(packet)} became ${seen}; promised: ${[...promises].join(' or ')}`, begin, end);
  }

  /** Notes a failure that nothing explains. */
  fail(what: string, begin: number, end: number): void {
    const when = `from ${this.#timeline.seconds(begin)} s to ${this.#timeline.seconds(end)} s`;
    const text = `${this.operation}: ${what}, ${when}\n${this.#timeline.excerpt(begin, end)}`;
    this.unexplained.push({ operation: this.operation, text });
  }

  /** Counts the connections that are made while a fault of this kind lasts, and how long it takes to recover. */
  async during(kind: string, fault: () => Promise<void>): Promise<void> {
    const cost: Cost = this.costs.get(kind) ?? {
      times: 0,
      connections: 0,
      failed: 0,
      recoveries: [],
      outages: [],
    };
    this.costs.set(kind, cost);
    cost.times++;
    const current: Fault = { cost, begun: performance.now() };
    this.#faults = [current, ...this.#faults.slice(0, REMEMBERED)];
    try {
      await fault();
      cost.recoveries.push(performance.now() - current.begun);
    } finally {
      current.ended = performance.now();
    }
  }

  /** The fault that lasted at this time. */
  #faultAt(time: number): Fault | undefined {
    return this.#faults.find(({ begun, ended = Infinity }) => begun <= time && time <= ended);
  }
}

function countFailed(fault: Fault, begin: number): void {
  const { cost, begun } = fault;
  cost.failed++;
  fault.outage ??= cost.outages.push(0) - 1;
  cost.outages[fault.outage] = Math.max(cost.outages[fault.outage] ?? 0, begin - begun);
}
