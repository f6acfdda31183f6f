import type { InterfaceAddresses } from '../kernel/route/addresses.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { type NodePortAddresses, nodePortIPs } from '../model/node-port-addresses.ts';
import type { Logger } from '../obs/log.ts';

export interface AddressWatchOptions {
  readonly addresses: Pick<InterfaceAddresses, 'list' | 'watch'>;
  /** Those of the listed addresses that matter; undefined where nothing follows from any change. */
  readonly relevant: ((listed: readonly string[]) => readonly string[]) | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when other addresses than before matter. */
  readonly onChange: () => void;
}

/** Pods come and go with addresses of their own; a burst of changes is looked at once. */
const settleMs = 100;
const rewatchMs = 5_000;

/** What matters where node ports are served at the node's addresses in a set, and nothing if that is all of them. */
export function servingNodePorts(set: NodePortAddresses): AddressWatchOptions['relevant'] {
  return set.matchAll ? undefined : (listed) => nodePortIPs(set, listed);
}

/** Tells when addresses of the node that matter change. */
export class AddressWatch {
  readonly #options: AddressWatchOptions;
  #watch: { close(): void } | undefined;
  #timer: Timer | undefined;
  #last: string | undefined;

  constructor(options: AddressWatchOptions) {
    this.#options = options;
    if (options.relevant) this.#start();
  }

  close(): void {
    this.#timer?.cancel();
    this.#watch?.close();
  }

  #start(): void {
    try {
      this.#watch = this.#options.addresses.watch(
        () => this.#schedule(settleMs),
        (error) => this.#lose(error),
      );
      this.#schedule(0);
    } catch (error) {
      this.#lose(error);
    }
  }

  #lose(error: unknown): void {
    this.#options.logger.error(error, 'No subscription to address changes; trying again');
    this.#watch = undefined;
    this.#schedule(rewatchMs);
  }

  #schedule(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimeout(() => this.#look(), ms);
  }

  #look(): void {
    if (!this.#watch) {
      this.#start();
      return;
    }
    this.#compare().catch((error: unknown) => {
      this.#options.logger.error(error, 'Failed to list interface addresses; trying again');
      this.#schedule(rewatchMs);
    });
  }

  async #compare(): Promise<void> {
    const { addresses, relevant, onChange } = this.#options;
    const now = relevant?.(await addresses.list())
      .toSorted()
      .join();
    const hasChanged = this.#last !== undefined && this.#last !== now;
    this.#last = now;
    if (hasChanged) onChange();
  }
}
