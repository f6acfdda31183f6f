import type { KernelInterfaces } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';
import { AddressWatch } from './address-watch.ts';
import { NftablesBackend } from './apply.ts';
import { LoopbackProxy } from './loopback-proxy.ts';
import { Repairs } from './repairs.ts';
import type { NftablesSettings } from './settings.ts';
import { TableWatch } from './table-watch.ts';

export interface WatchedBackendOptions {
  readonly settings: NftablesSettings;
  readonly kernel: KernelInterfaces;
  readonly metrics: ProxyMetrics;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Asks for a sync with `changed: 'all'`. */
  readonly requestFullSync: () => void;
  /** Releases what `kernel` holds. */
  readonly onClose: () => void;
}

/** The backend together with the watches that tell when the kernel or the node went another way. */
export class WatchedBackend implements Backend {
  readonly family: Family;
  readonly #options: WatchedBackendOptions;
  readonly #backend: NftablesBackend;
  readonly #repairs: Repairs;
  readonly #loopback: LoopbackProxy | undefined;
  #watches: { close(): void }[] = [];

  constructor(options: WatchedBackendOptions) {
    const { settings, kernel, metrics, logger, clock } = options;
    this.#options = options;
    this.family = settings.family;
    this.#backend = new NftablesBackend({
      settings,
      client: kernel.nft,
      interfaceAddresses: () => kernel.addresses.list(),
      metrics,
      logger,
      clock,
    });
    this.#repairs = new Repairs({
      family: this.family,
      clock,
      logger,
      repairs: metrics.repairs,
      repair: () => this.#readBack(),
    });
    const servesLoopback = settings.localhostNodePorts && settings.nodePortAddresses.explicitLoopback;
    this.#loopback = servesLoopback
      ? new LoopbackProxy({ family: this.family, metrics, logger, clock, random: Math.random })
      : undefined;
  }

  async sync(request: SyncRequest): Promise<SyncResult> {
    // From before the first transaction on, so that no change after it can be missed.
    if (this.#watches.length === 0) this.#watches = this.#startWatches();
    const result = await this.#backend.sync(request);
    await this.#loopback?.update(request);
    return result;
  }

  async close(): Promise<void> {
    this.#repairs.close();
    this.#loopback?.close();
    for (const watch of this.#watches) watch.close();
    this.#options.onClose();
  }

  #startWatches(): { close(): void }[] {
    const { settings, kernel, logger, clock, requestFullSync } = this.#options;
    return [
      new TableWatch({
        client: kernel.nft,
        family: this.family,
        clock,
        logger,
        onChange: (change) => this.#repairs.changed(change),
      }),
      new AddressWatch({
        addresses: kernel.addresses,
        nodePortAddresses: settings.nodePortAddresses,
        clock,
        logger,
        onChange: requestFullSync,
      }),
    ];
  }

  #readBack(): void {
    this.#backend.forget();
    this.#options.requestFullSync();
  }
}
