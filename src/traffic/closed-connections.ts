import type { ConntrackClient } from '../kernel/ct/client.ts';
import type { FlowSubscription } from '../kernel/ct/events.ts';
import type { FlowAddress, TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import { isClosed } from './flow-state.ts';
import type { ObservedService } from './service-index.ts';

export interface ClosedConnectionsOptions {
  readonly families: Iterable<Family>;
  readonly table: Pick<ConntrackClient, 'forEachTrackedFlow' | 'readAgain'>;
  readonly events: FlowSubscription;
  /** The service port of a flow. */
  readonly find: (flow: TrackedFlow) => ObservedService | undefined;
  /** Called once for each connection, with its packets and bytes. The record is filled again for the next one. */
  readonly onClosed: (flow: TrackedFlow, service: ObservedService) => void;
  readonly clock: Clock;
}

/** Entries to read again at a time. */
const readAtOnce = 100;
/** A request costs as much as many entries, so it waits for more of them. */
const collectMs = 5;

/**
 * Tells when TCP connections end, which the kernel remembers for minutes afterwards. Its event has no packets and bytes,
 * so the entry is read again. A connection whose entry cannot be read is not told: the kernel reports it once more when
 * it forgets it.
 */
export class ClosedConnections {
  readonly #options: ClosedConnectionsOptions;
  /** Ids of connections that were told, or had ended before, and that the kernel still remembers. */
  readonly #told = new Set<number>();
  readonly #unread = new Map<number, FlowAddress>();
  #collecting: Timer | undefined;
  #isOn = true;
  #isLooking = true;
  #isReading = false;

  constructor(options: ClosedConnectionsOptions) {
    this.#options = options;
  }

  /** From now on, connections that close are told. Resolves when those are known that had closed before. */
  async start(): Promise<void> {
    const { families, table, events, find } = this.#options;
    events.followCloses(true);
    try {
      for (const family of families) {
        await table.forEachTrackedFlow(family, {
          flow: (flow) => {
            if (isClosed(flow) && !this.#unread.has(flow.id) && find(flow)) this.#told.add(flow.id);
          },
          restart: () => {},
        });
      }
      await events.drained();
    } catch {
      // Connections that had closed before are then told when the kernel forgets them.
    }
    this.#isLooking = false;
  }

  stop(): void {
    this.#isOn = false;
    this.#collecting?.cancel();
    this.#options.events.followCloses(false);
  }

  /** Takes over an event of the kernel. */
  closed(flow: TrackedFlow): void {
    if (!this.#isOn || !this.#options.find(flow)) return;
    // While the table is read, it may show a connection as closed before the event comes.
    if (this.#told.has(flow.id) && !this.#isLooking) return;
    this.#told.delete(flow.id);
    this.#unread.set(flow.id, addressOf(flow));
    if (this.#unread.size > 1) return;
    this.#collecting?.cancel();
    this.#collecting = this.#options.clock.setTimeout(() => void this.#read(), collectMs);
  }

  /** The kernel forgot a connection. Returns whether its end was told. */
  forget(id: number): boolean {
    this.#unread.delete(id);
    return this.#told.delete(id);
  }

  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (this.#unread.size > 0) {
        const some = this.#unread.values().take(readAtOnce).toArray();
        await this.#options.table.readAgain(some, (flow) => this.#tell(flow));
        for (const { id } of some) this.#unread.delete(id);
      }
    } catch {
      this.#unread.clear();
    }
    this.#isReading = false;
  }

  #tell(flow: TrackedFlow): void {
    // The kernel may have reported meanwhile that it forgot the connection.
    if (!this.#unread.delete(flow.id) || !this.#isOn) return;
    this.#told.add(flow.id);
    const service = this.#options.find(flow);
    if (service) this.#options.onClosed(flow, service);
  }
}

/** A copy of what finds the entry: the record is filled again for the next event. */
function addressOf(flow: TrackedFlow): FlowAddress {
  const { family, protocol, source, sourcePort, destination, destinationPort, zone, id } = flow;
  return { family, protocol, source, sourcePort, destination, destinationPort, zone, id };
}
