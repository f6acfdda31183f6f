import type { InterfaceAddresses } from '../kernel/route/addresses.ts';
import type { Closable } from '../kernel/route/client.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { type NodePortAddresses, nodePortIPs } from '../model/node-port-addresses.ts';
import type { Logger } from '../obs/log.ts';
import { LastingSubscription } from './lasting-subscription.ts';

/** The node's addresses, and which of them matter to a mode. */
export interface AddressSource extends Pick<InterfaceAddresses, 'watch'> {
  /** Addresses on the node's interfaces at this moment. */
  list(): Promise<readonly string[]>;
  /** Those of the listed addresses whose change calls for a sync; absent when none does. */
  readonly relevant?: ((listed: readonly string[]) => readonly string[]) | undefined;
}

export interface AddressWatchOptions {
  readonly addresses: Pick<AddressSource, 'list' | 'watch'>;
  readonly relevant: AddressSource['relevant'];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when other addresses than before matter. */
  readonly onChange: () => void;
}

/** Pods come and go with addresses of their own; a burst of changes is looked at once. */
const settleMs = 100;
const relistMs = 5_000;

/** What matters where node ports are served at some of the node's addresses; undefined when they are at all of them. */
export function servingNodePorts(set: NodePortAddresses): AddressSource['relevant'] {
  return set.matchAll ? undefined : (listed) => nodePortIPs(set, listed);
}

/** The node's addresses for a mode in which only node ports depend on them; undefined when they are at all of them. */
export function nodePortSource(
  addresses: Pick<InterfaceAddresses, 'list' | 'watch'>,
  set: NodePortAddresses,
): AddressSource | undefined {
  const relevant = servingNodePorts(set);
  return relevant && { list: () => addresses.list(), watch: (...args) => addresses.watch(...args), relevant };
}

/** Reports when addresses of the node that matter change. */
export class AddressWatch {
  readonly #options: AddressWatchOptions;
  readonly #subscription: LastingSubscription<Closable> | undefined;
  #timer: Timer | undefined;
  #last: string | undefined;

  constructor(options: AddressWatchOptions) {
    const { addresses, clock, logger } = options;
    this.#options = options;
    if (!options.relevant) return;
    this.#subscription = new LastingSubscription({
      topic: 'address changes',
      open: (onLost) => addresses.watch(() => this.#schedule(settleMs), onLost),
      onReopened: () => this.#schedule(0),
      clock,
      logger,
    });
    this.#schedule(0);
  }

  close(): void {
    this.#timer?.cancel();
    this.#subscription?.close();
  }

  #schedule(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimeout(() => void this.#compare(), ms);
  }

  async #compare(): Promise<void> {
    const { addresses, relevant, onChange, logger } = this.#options;
    try {
      const now = relevant?.(await addresses.list())
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
