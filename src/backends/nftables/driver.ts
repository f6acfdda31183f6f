import type { NftClient } from '../../kernel/nft/client.ts';
import { NftError } from '../../kernel/nft/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { FastPathStatus } from '../backend.ts';
import type { Closable, Driver, EngineSignals, Wanted, WantedChanges, Written } from '../driver.ts';
import { TableWatch } from '../table-watch.ts';
import { Commits, isOutdated } from './commits.ts';
import { FastPath, type FastPathOptions } from './fast-path.ts';
import { FullTableWrite } from './full-write.ts';
import { IdleChains } from './idle-chains.ts';
import { isSetName, tableOf } from './layout.ts';
import type { LoopbackProxy } from './loopback-proxy.ts';
import { type Believed, type Prepared, prepareAlone, prepareChanges, writtenBy } from './prepare.ts';
import { prepareRepair } from './repair.ts';
import type { NftablesSettings } from './settings.ts';

export interface NftablesOptions {
  readonly settings: NftablesSettings;
  readonly client: NftClient;
  /** Serves node ports on loopback, where that is asked for. */
  readonly loopback?: LoopbackProxy | undefined;
  readonly metrics: Pick<ProxyMetrics, 'nftablesSyncFailures' | 'nftablesCleanupFailures'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Where the fast path finds devices; without it there is none. */
  readonly fastPath?: Pick<FastPathOptions, 'links' | 'isCounting'> | undefined;
  /** See PrepareOptions. */
  readonly endpointsToRead?: number;
  /** Releases the client. */
  readonly onClose?: () => Promise<void>;
}

/** Writes the table of one family. Each write is one transaction: packets see the old state or the new one. */
export class NftablesDriver implements Driver<Believed> {
  readonly subject = 'table kube-proxy';
  readonly #options: NftablesOptions;
  readonly #commits: Commits;
  readonly #fastPath: FastPath | undefined;
  #idleChains: IdleChains | undefined;

  constructor(options: NftablesOptions) {
    this.#options = options;
    this.#commits = new Commits(options);
    this.#fastPath = options.fastPath && new FastPath({ ...options, ...options.fastPath });
  }

  get fastPath(): FastPathStatus | undefined {
    return this.#fastPath?.status;
  }

  async writeChanges(belief: Believed, wanted: WantedChanges): Promise<Written<Believed>> {
    const departs = hasNewDepartures(belief, wanted);
    const written = await this.#write(await prepareChanges(this.#options, belief, wanted), wanted);
    if (departs) await this.#fastPath?.renew();
    return written;
  }

  /** Reads only the suspect sets. Resolves to undefined when something else is wrong, too. */
  async writeRepair(
    belief: Believed,
    suspects: ReadonlySet<string>,
    wanted: WantedChanges,
  ): Promise<Written<Believed> | undefined> {
    const sets = new Set([...suspects].filter(isSetName));
    const departs = hasNewDepartures(belief, wanted);
    const prepared = await prepareRepair(this.#options, belief, sets, wanted);
    if (!prepared) return undefined;
    try {
      const written = await this.#write(prepared, wanted);
      await this.#fastPath?.ensure({ anew: departs });
      return written;
    } catch (error) {
      if (isOutdated(error)) return undefined;
      throw error;
    }
  }

  writeAll(wanted: Wanted): FullTableWrite {
    return new FullTableWrite({ ...this.#options, commits: this.#commits, fastPath: this.#fastPath }, wanted);
  }

  prepareAlone(plan: ServicePlan): void {
    prepareAlone(plan, this.#options.settings);
  }

  isRefusal(error: unknown): boolean {
    return error instanceof NftError;
  }

  watch({ changed, exclusively }: EngineSignals<Believed>): Closable[] {
    const { client, settings, clock, logger } = this.#options;
    const table = tableOf(settings.family);
    this.#idleChains = new IdleChains({ settings, commits: this.#commits, clock, exclusively });
    // Which client is bound to which endpoint: packets write it.
    const watch = new TableWatch({ client, table, unwatched: 'clients', clock, logger, onChange: changed });
    const fastPath = this.#fastPath;
    const devices =
      settings.fastPath &&
      fastPath?.watch(() => {
        void exclusively(async (belief) => {
          if (belief) await fastPath.ensure();
        });
      });
    return [watch, this.#idleChains, ...(devices ? [devices] : [])];
  }

  withoutFastPath(work: () => Promise<void>): Promise<void> {
    return this.#fastPath?.without(work) ?? work();
  }

  async close(): Promise<void> {
    this.#options.loopback?.close();
    await this.#options.onClose?.();
  }

  async #write(prepared: Prepared, wanted: WantedChanges): Promise<Written<Believed>> {
    await this.#commits.commit(prepared);
    this.#idleChains?.released(prepared.released);
    await this.#options.loopback?.update(wanted);
    return writtenBy(prepared);
  }
}

/** Whether connections that may be on the fast path get a reset from now on. */
function hasNewDepartures({ departed }: Believed, wanted: Wanted): boolean {
  return wanted.departed?.keys().some((id) => !departed.has(id)) ?? false;
}
