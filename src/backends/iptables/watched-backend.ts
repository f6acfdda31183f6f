import { CommandError } from '../../kernel/iptables/command-error.ts';
import type { Commands } from '../../kernel/iptables/commands.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import { AddressWatch, type AddressWatchOptions } from '../address-watch.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';
import { Repairs } from '../repairs.ts';
import { Canary } from './canary.ts';
import type { Census } from './census.ts';
import { DamageReporter } from './damage-reporter.ts';
import type { RuleWatcher } from './rule-watch.ts';

/** The backend that does the work. */
export type SyncingBackend = Backend & { readonly skipsHourlySync: boolean };

export interface WatchedBackendOptions {
  readonly backend: SyncingBackend;
  readonly commands: Commands;
  readonly census: Census;
  readonly metrics: Pick<ProxyMetrics, 'repairs'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Milliseconds between two looks at the canary. */
  readonly syncPeriod: number;
  /** Has the watcher told of what others do; the function returned ends that. */
  readonly watch: (watcher: RuleWatcher) => () => void;
  /** The addresses of the node's interfaces, and which of them matter to node ports. */
  readonly nodePorts: Pick<AddressWatchOptions, 'addresses' | 'relevant'>;
  /** Asks for a sync with `changed: 'all'`. */
  readonly requestFullSync: () => void;
  readonly onClose: () => Promise<void>;
}

/** How often a sync is tried while others keep the lock; each attempt waits for it. */
const lockAttempts = 3;

/** The backend together with what notices that others took its rules away. */
export class WatchedBackend implements Backend {
  readonly family: Family;
  readonly #options: WatchedBackendOptions;
  readonly #canary: Canary;
  readonly #repairs: Repairs;
  readonly #reporter: DamageReporter;
  #unwatch: (() => void) | undefined;
  #addresses: AddressWatch | undefined;

  constructor(options: WatchedBackendOptions) {
    const { backend, commands, census, metrics, logger, clock, syncPeriod } = options;
    this.#options = options;
    this.family = backend.family;
    this.#repairs = new Repairs({
      family: this.family,
      subject: 'the iptables ruleset',
      clock,
      logger,
      repairs: metrics.repairs,
      repair: () => void this.#repair(),
    });
    this.#reporter = new DamageReporter({
      census,
      commands,
      clock,
      logger,
      onDamage: (change) => this.#repairs.changed(change),
    });
    this.#canary = new Canary({
      commands,
      clock,
      logger,
      interval: syncPeriod,
      onPlanted: (table, chain) => census.expectEmpty(table, chain),
      onLost: () => this.#repairs.changed({ objects: new Map([['canary deleted', 1]]), by: 'unknown' }),
    });
  }

  get skipsHourlySync(): boolean {
    return this.#options.backend.skipsHourlySync;
  }

  async sync(request: SyncRequest): Promise<SyncResult> {
    // From before the first write on, so that no change after it can be missed.
    if (!this.#unwatch) this.#startWatches();
    const { backend, logger } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        return await backend.sync(attempt === 1 ? request : { ...request, changed: 'all' });
      } catch (error) {
        const isBusy = error instanceof CommandError && error.isResourceProblem;
        if (!isBusy || attempt === lockAttempts) throw error;
        logger.error(error, 'iptables is busy; syncing again', { ip_family: this.family });
      }
    }
  }

  async close(): Promise<void> {
    this.#unwatch?.();
    this.#addresses?.close();
    this.#repairs.close();
    this.#reporter.close();
    await this.#canary.close();
    await this.#options.backend.close();
    await this.#options.onClose();
  }

  #startWatches(): void {
    const { census, watch, nodePorts, clock, logger, requestFullSync } = this.#options;
    this.#addresses = new AddressWatch({ ...nodePorts, clock, logger, onChange: requestFullSync });
    this.#unwatch = watch({
      owns: (table, chain) => census.owns(table, chain),
      onDamage: (change) => this.#reporter.damaged(change),
      onSuspicion: (by) => this.#reporter.suspect(by),
    });
    this.#canary.start();
  }

  async #repair(): Promise<void> {
    this.#options.requestFullSync();
    await this.#canary.plant();
  }
}
