import type { KernelInterfaces } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import { AddressWatch, servingNodePorts } from '../address-watch.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';
import { Repairs } from '../repairs.ts';
import { type TableChange, TableWatch } from '../table-watch.ts';
import { NftablesBackend } from './backend.ts';
import { isSetName, type SetName, tableOf } from './layout.ts';
import { LoopbackProxy } from './loopback-proxy.ts';
import type { NftablesSettings } from './settings.ts';

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
  readonly usesServiceCIDRs = true;
  readonly #options: WatchedBackendOptions;
  readonly #backend: NftablesBackend;
  readonly #repairs: Repairs;
  readonly #loopback: LoopbackProxy | undefined;
  #watches: { close(): void }[] = [];
  /** What others changed since the last repair: elements of these sets and perhaps rules, or anything at all. */
  #changed: Set<SetName> | 'anything' = new Set();

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
      subject: 'table kube-proxy',
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
        table: tableOf(this.family),
        // Which client is bound to which endpoint: packets write it.
        unwatched: 'clients',
        clock,
        logger,
        onChange: (change) => this.#noteChange(change),
      }),
      new AddressWatch({
        addresses: kernel.addresses,
        relevant: servingNodePorts(settings.nodePortAddresses),
        clock,
        logger,
        onChange: requestFullSync,
      }),
    ];
  }

  #noteChange(change: TableChange): void {
    const { sets } = change;
    if (!sets) this.#changed = 'anything';
    else if (this.#changed !== 'anything') for (const set of sets) if (isSetName(set)) this.#changed.add(set);
    this.#repairs.changed(change);
  }

  #readBack(): void {
    if (this.#changed === 'anything') this.#backend.forget();
    else this.#backend.suspect(this.#changed);
    this.#changed = new Set();
    this.#options.requestFullSync();
  }
}
