import type { NftClient } from '../../kernel/nft/client.ts';
import { NftError } from '../../kernel/nft/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';
import { type Believed, type Prepared, prepareChanges, prepareFull } from './prepare.ts';
import { suspectsOf } from './refusal.ts';
import type { NftablesSettings } from './settings.ts';
import type { NodeFacts } from './static-elements.ts';
import { Transaction } from './transaction.ts';

export type NftablesMetrics = Pick<ProxyMetrics, 'nftablesSyncFailures' | 'nftablesCleanupFailures'>;

export interface NftablesOptions {
  readonly settings: NftablesSettings;
  readonly client: NftClient;
  /** Addresses on the node's interfaces at this moment. */
  readonly interfaceAddresses: () => Promise<readonly string[]>;
  readonly metrics: NftablesMetrics;
  readonly logger: Logger;
  readonly clock: Clock;
  /** See PrepareOptions. */
  readonly endpointsToRead?: number;
}

/** Attempts at one full sync, when service ports are refused or somebody else writes meanwhile. */
const maxAttempts = 8;

/**
 * Attempts that insist on the ruleset not having changed since it was read. Any change of any table counts, that of
 * the other family among them, so that insisting for long could mean never to get there.
 */
const strictAttempts = 1;

/**
 * nftables mode in one family. What the kernel holds is read at the first sync, after a failure, after `forget`, and
 * with `changed: 'all'`; otherwise only the difference that changed service ports make is sent. Each sync is one
 * transaction: packets see the old state or the new one.
 */
export class NftablesBackend implements Backend {
  readonly family: Family;
  readonly #options: NftablesOptions;
  readonly #labels: { readonly ip_family: Family };
  /** Undefined when it is not known what the kernel holds. */
  #believed: Believed | undefined;
  /** How often it was called in doubt what the kernel holds. */
  #forgotten = 0;
  /** Service ports that are not programmed. */
  readonly #refused = new Map<string, Error>();

  constructor(options: NftablesOptions) {
    this.#options = options;
    this.family = options.settings.family;
    this.#labels = { ip_family: this.family };
  }

  async sync(request: SyncRequest): Promise<SyncResult> {
    const facts = await this.#nodeFacts(request);
    if (
      request.changed === 'all' ||
      !(await this.#syncChanges({ ...request, changed: request.changed }, facts))
    ) {
      await this.#syncAll(request, facts);
    }
    return { refused: [...this.#refused].map(([key, error]) => ({ key, error })) };
  }

  /** Makes the next sync read what the kernel holds; a sync under way does not count as one. */
  forget(): void {
    this.#believed = undefined;
    this.#forgotten++;
  }

  /** Everything stays in the kernel; the client belongs to whoever opened it. */
  async close(): Promise<void> {
    this.forget();
  }

  /** False when a full sync is needed: nothing is known, or the kernel turned out to hold something else. */
  async #syncChanges(
    request: SyncRequest & { readonly changed: ReadonlySet<string> },
    facts: NodeFacts,
  ): Promise<boolean> {
    const believed = this.#believed;
    const forgotten = this.#forgotten;
    if (!believed) return false;
    this.#believed = undefined;
    const prepared = await prepareChanges(this.#options, believed, request, facts);
    try {
      await this.#commit(prepared);
    } catch (error) {
      if (!(error instanceof NftError)) throw error;
      this.#options.logger.error(error, 'Partial sync refused; reading the table back', this.#labels);
      return false;
    }
    for (const key of request.changed) this.#refused.delete(key);
    this.#accept(prepared, forgotten);
    return true;
  }

  async #syncAll(request: SyncRequest, facts: NodeFacts): Promise<void> {
    this.#believed = undefined;
    this.#refused.clear();
    for (let attempt = 1; ; attempt++) {
      const forgotten = this.#forgotten;
      const prepared = await this.#prepareAll(request, facts, this.#refused);
      if (attempt <= strictAttempts) prepared.batch.expectGeneration(prepared.generation ?? 0);
      try {
        await this.#commit(prepared);
      } catch (error) {
        if (!(error instanceof NftError) || attempt === maxAttempts) throw error;
        // Somebody may have written to the table since it was read: only what fails twice is held against a service.
        if (attempt > 1 && !isOutdated(error)) await this.#setAside(error, prepared, request, facts);
        continue;
      }
      this.#accept(prepared, forgotten);
      await this.#removeIdle(prepared);
      return;
    }
  }

  #prepareAll(
    request: SyncRequest,
    facts: NodeFacts,
    without: ReadonlyMap<string, unknown>,
  ): Promise<Prepared> {
    const plans =
      without.size === 0 ? request.plans : new Map([...request.plans].filter(([key]) => !without.has(key)));
    return prepareFull(this.#options, plans, facts);
  }

  async #commit(prepared: Prepared): Promise<void> {
    if (prepared.batch.operations.length === 0) return;
    const { client, clock, logger, metrics } = this.#options;
    const start = clock.monotonic();
    try {
      const { bytes } = await client.commit(prepared.batch);
      logger.v(4).info('Committed', {
        ...this.#labels,
        elements: prepared.elementOperations,
        bytes,
        ms: Math.round(clock.monotonic() - start),
      });
    } catch (error) {
      if (!isOutdated(error)) metrics.nftablesSyncFailures.inc(this.#labels);
      throw error;
    }
  }

  /** `forgotten` is how often it was in doubt when the preparation began. */
  #accept({ believed, failures }: Prepared, forgotten: number): void {
    if (this.#forgotten === forgotten) this.#believed = believed;
    for (const { key, error } of failures) this.#refused.set(key, error);
  }

  /** Finds the service port that the kernel refuses and leaves it out from now on; throws when there is none. */
  async #setAside(
    error: NftError,
    prepared: Prepared,
    request: SyncRequest,
    facts: NodeFacts,
  ): Promise<void> {
    let suspects = suspectsOf(error, prepared.believed.shadow);
    while (suspects.length > 1) {
      const half = suspects.slice(0, Math.ceil(suspects.length / 2));
      const without = new Map([...this.#refused, ...half.map((key) => [key, error] as const)]);
      const isHalfGuilty = await this.#isAccepted(await this.#prepareAll(request, facts, without));
      suspects = isHalfGuilty ? half : suspects.slice(half.length);
    }
    const [culprit] = suspects;
    if (culprit === undefined) throw error;
    this.#refused.set(culprit, error);
    this.#options.logger.error(error, 'Service port refused; programming the others', {
      ...this.#labels,
      servicePort: culprit,
    });
  }

  async #isAccepted(prepared: Prepared): Promise<boolean> {
    try {
      await this.#options.client.check(prepared.batch);
      return true;
    } catch (error) {
      if (error instanceof NftError) return false;
      throw error;
    }
  }

  /** Before kernel 6.2 a chain counts as used for a moment after the last reference went: it then stays until later. */
  async #removeIdle({ idle }: Prepared): Promise<void> {
    if (idle.length === 0) return;
    const transaction = new Transaction(this.family);
    transaction.deleteChains(idle);
    try {
      await this.#options.client.commit(transaction.finish());
    } catch (error) {
      this.#options.metrics.nftablesCleanupFailures.inc(this.#labels);
      this.#options.logger.v(2).info('Unused chains could not be removed yet', { ...this.#labels, error });
    }
  }

  async #nodeFacts({ serviceCIDRs }: SyncRequest): Promise<NodeFacts> {
    const { settings, interfaceAddresses, logger } = this.#options;
    if (settings.nodePortAddresses.matchAll) return { serviceCIDRs, interfaceAddresses: [] };
    try {
      return { serviceCIDRs, interfaceAddresses: await interfaceAddresses() };
    } catch (error) {
      logger.error(error, 'Failed to list interface addresses; node ports are not served', this.#labels);
      return { serviceCIDRs, interfaceAddresses: [] };
    }
  }
}

/** The ruleset changed since it was read. */
function isOutdated(error: unknown): boolean {
  return error instanceof NftError && error.errno === 'ERESTART';
}
