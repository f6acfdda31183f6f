import type { InterfaceAddresses } from '../kernel/route/addresses.ts';
import type { Closable } from '../kernel/route/client.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { type NodePortAddresses, nodePortIPs } from '../model/node-port-addresses.ts';
import type { Logger } from '../obs/log.ts';
import { LastingSubscription } from './lasting-subscription.ts';

/** Addresses on the node's interfaces. */
export interface AddressSource extends Pick<InterfaceAddresses, 'watch'> {
  list(): Promise<readonly string[]>;
}

/** The node's addresses, and which of them matter to a mode. */
export interface NodeAddresses {
  readonly source: AddressSource;
  /** Those of the listed addresses whose change calls for a sync; undefined when none does. */
  readonly relevant?: ((listed: readonly string[]) => readonly string[]) | undefined;
}

export interface AddressWatchOptions {
  readonly source: AddressSource;
  readonly relevant: NonNullable<NodeAddresses['relevant']>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when other addresses than before matter. */
  readonly onChange: () => void;
}

/** Pods come and go with addresses of their own; a burst of changes is looked at once. */
const settleMs = 100;
const relistMs = 5_000;

/** Where only node ports depend on the node's addresses; undefined when they are served at all of them. */
export function nodePortSource(source: AddressSource, set: NodePortAddresses): NodeAddresses | undefined {
  return set.matchAll ? undefined : { source, relevant: (listed) => nodePortIPs(set, listed) };
}

/** Reports when addresses of the node that matter change. */
export class AddressWatch {
  readonly #options: AddressWatchOptions;
  readonly #subscription: LastingSubscription<Closable>;
  #timer: Timer | undefined;
  #last: string | undefined;

  constructor(options: AddressWatchOptions) {
    const { source, clock, logger } = options;
    this.#options = options;
    this.#subscription = new LastingSubscription({
      topic: 'address changes',
      open: (onLost) => source.watch(() => this.#schedule(settleMs), onLost),
      onReopened: () => this.#schedule(0),
      clock,
      logger,
    });
    this.#schedule(0);
  }

  close(): void {
    this.#timer?.cancel();
    this.#subscription.close();
  }

  #schedule(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimeout(() => void this.#compare(), ms);
  }

  async #compare(): Promise<void> {
    const { source, relevant, onChange, logger } = this.#options;
    try {
      const now = relevant(await source.list())
        .toSorted()
        .join();
      const hasChanged = this.#last !== undefined && this.#last !== now;
      this.#last = now;
      if (hasChanged) onChange();
    } catch (error) {
      logger.error(error, 'Failed to list interface addresses; trying again');
      this.#schedule(relistMs);
    }
  }
}
