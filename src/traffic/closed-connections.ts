import type { ConntrackClient } from '../kernel/ct/client.ts';
import type { FlowSubscription } from '../kernel/ct/events.ts';
import { TrackedFlow } from '../kernel/ct/tracked-flow.ts';
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
}

/** Entries to read again at a time: other work of the event loop waits for them. */
const readAtOnce = 100;

/**
 * Tells when TCP connections end, which the kernel remembers for minutes afterwards. Its event has no packets and bytes,
 * so the entry is read again. A connection whose entry cannot be read is not told: the kernel reports it once more when
 * it forgets it.
 */
export class ClosedConnections {
  readonly #options: ClosedConnectionsOptions;
  /** Ids of connections that were told, or had ended before, and that the kernel still remembers. */
  readonly #told = new Set<number>();
  readonly #unread = new Map<number, TrackedFlow>();
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
    this.#options.events.followCloses(false);
  }

  /** Takes over an event of the kernel. */
  closed(flow: TrackedFlow): void {
    if (!this.#isOn || !this.#options.find(flow)) return;
    // While the table is read, it may show a connection as closed before the event comes.
    if (this.#told.has(flow.id) && !this.#isLooking) return;
    this.#told.delete(flow.id);
    this.#unread.set(flow.id, Object.assign(new TrackedFlow(), flow));
    // Together with the other events that are queued.
    if (this.#unread.size === 1) queueMicrotask(() => void this.#read());
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
