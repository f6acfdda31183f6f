import type { ConntrackClient } from '../kernel/ct/client.ts';
import { IPS_SEEN_REPLY } from '../kernel/ct/tracked-flow.ts';
import type { Clock } from '../lib/clock.ts';
import { isOpen } from './flow-state.ts';
import type { ObservedService } from './service-index.ts';
import type { ServiceIndexes } from './service-indexes.ts';

/** Looks take at most this part of the time: a table with many closed connections is read less often. */
const restPerLook = 500;
/** A look at a small table may have waited for other work rather than worked. */
const maxRestMs = 5_000;
/** What a look is expected to take for each entry of the table. */
const msPerEntry = 0.002;
/** Flows without an answer that are remembered until the next look. */
const maxWaiting = 50_000;

/** The connection table. */
export interface FlowTable extends Pick<ConntrackClient, 'forEachTrackedFlow'> {
  /** The number of entries. */
  size(): number;
}

/**
 * Counts the flows in the connection table that are open, at a look. A flow that one look finds without an answer, and
 * the next one not at all, ended unanswered.
 */
export class OpenFlows {
  readonly #table: FlowTable;
  readonly #services: ServiceIndexes;
  readonly #clock: Clock;
  #open = new Map<ObservedService, number>();
  #waiting = new Map<number, ObservedService>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #lookMs = 0;

  constructor(table: FlowTable, services: ServiceIndexes, clock: Clock) {
    this.#table = table;
    this.#services = services;
    this.#clock = clock;
  }

  /** Flows of a service port that were open at the last look. */
  of(service: ObservedService): number {
    return this.#open.get(service) ?? 0;
  }

  /** Service ports with open flows. */
  services(): Iterable<ObservedService> {
    return this.#open.keys();
  }

  /** Looks at the table, unless it is too early. Calls back for each flow that ended unanswered. */
  async refresh(onUnanswered: (service: ObservedService) => void): Promise<void> {
    const begun = this.#clock.monotonic();
    const restMs = Math.max(
      Math.min(restPerLook * this.#lookMs, maxRestMs),
      restPerLook * msPerEntry * this.#table.size(),
    );
    if (begun - this.#lookedAt < restMs) return;
    const open = new Map<ObservedService, number>();
    const waiting = new Map<number, ObservedService>();
    const seen = new Set<number>();
    for (const family of this.#services.byFamily.keys()) {
      await this.#table.forEachTrackedFlow(family, {
        flow: (flow) => {
          const service = this.#services.find(flow);
          if (!service) return;
          if (isOpen(flow)) open.set(service, (open.get(service) ?? 0) + 1);
          if (this.#waiting.has(flow.id)) seen.add(flow.id);
          if (!(flow.status & IPS_SEEN_REPLY) && waiting.size < maxWaiting) waiting.set(flow.id, service);
        },
        restart: () => {
          for (const service of open.keys()) if (service.plan.port.family === family) open.delete(service);
        },
      });
    }
    for (const [id, service] of this.#waiting) if (!seen.has(id)) onUnanswered(service);
    this.#open = open;
    this.#waiting = waiting;
    this.#lookedAt = this.#clock.monotonic();
    this.#lookMs = this.#lookedAt - begun;
  }
}
