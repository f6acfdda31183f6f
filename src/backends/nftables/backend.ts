import type { NftClient } from '../../kernel/nft/client.ts';
import { NftError } from '../../kernel/nft/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';
import type { SetName } from './layout.ts';
import { type Believed, type Prepared, prepareChanges, prepareFull } from './prepare.ts';
import { culpritsOf } from './refusal.ts';
import { prepareRepair } from './repair.ts';
import type { NftablesSettings } from './settings.ts';
import type { AddressFacts } from './static-elements.ts';
import { Transaction } from './transaction.ts';
import { TransactionLog } from './transaction-log.ts';

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

/** Attempts at one full sync that lead nowhere, because somebody else writes meanwhile. */
const maxAttempts = 8;

/** Service ports that are left out at most: each may take an attempt to find, and beyond so many they are not at fault. */
const maxRefused = 100;

/**
 * Attempts that insist on the ruleset not having changed since it was read. Any change of any table counts, that of
 * the other family among them, so that insisting for long could mean never to get there.
 */
const strictAttempts = 1;

const passingErrors: ReadonlySet<string> = new Set(['ENOMEM', 'ENOBUFS', 'EIO', 'EINTR', 'EAGAIN']);

/**
 * nftables mode in one family. What the kernel holds is read at the first sync, after a failure, after `forget`, and
 * with `changed: 'all'`, then only in part after `suspect`; otherwise only the difference that changed service ports make is sent. Each sync is one
 * transaction: packets see the old state or the new one.
 */
export class NftablesBackend implements Backend {
  readonly family: Family;
  readonly #options: NftablesOptions;
  readonly #labels: { readonly ip_family: Family };
  readonly #log: TransactionLog;
  /** Undefined when it is not known what the kernel holds. */
  #believed: Believed | undefined;
  /** What may have become of the table, when it is known that nothing else has. */
  #suspected: ReadonlySet<SetName> | undefined;
  /** How often it was called in doubt what the kernel holds. */
  #forgotten = 0;
  /** Service ports that are not programmed. */
  readonly #refused = new Map<string, Error>();
  /** Service ports that are programmed in part. */
  #conflicts: SyncResult['refused'] = [];
  /** As they were last listed. */
  #interfaceAddresses: readonly string[] = [];

  constructor(options: NftablesOptions) {
    this.#options = options;
    this.family = options.settings.family;
    this.#labels = { ip_family: this.family };
    this.#log = new TransactionLog({ ...options, family: this.family });
  }

  async sync(request: SyncRequest): Promise<SyncResult> {
    const facts = await this.#addressFacts(request);
    const { changed } = request;
    const isDone =
      changed === 'all'
        ? await this.#repair(request, facts)
        : await this.#syncChanges({ ...request, changed }, facts);
    if (!isDone) await this.#syncAll(request, facts);
    return { refused: this.#notProgrammed() };
  }

  /** Makes the next sync read what the kernel holds; a sync under way does not count as one. */
  forget(): void {
    this.#believed = undefined;
    this.#suspected = undefined;
    this.#forgotten++;
  }

  /** Rules, and elements of these sets, may no longer be what they were: the next sync of everything begins there. */
  suspect(sets: Iterable<SetName>): void {
    this.#suspected = new Set([...(this.#suspected ?? []), ...sets]);
  }

  /** Everything stays in the kernel; the client belongs to whoever opened it. */
  async close(): Promise<void> {
    this.forget();
  }

  /** False when a full sync is needed: nothing is known, or the kernel turned out to hold something else. */
  async #syncChanges(
    request: SyncRequest & { readonly changed: ReadonlySet<string> },
    facts: AddressFacts,
  ): Promise<boolean> {
    const believed = this.#believed;
    const forgotten = this.#forgotten;
    if (!believed) return false;
    this.#believed = undefined;
    const prepared = await prepareChanges(this.#options, believed, request, facts);
    return this.#tryCommit(prepared, request.changed, forgotten);
  }

  /** Puts right what somebody else is known to have changed. False when a full sync is needed. */
  async #repair(request: SyncRequest, facts: AddressFacts): Promise<boolean> {
    const believed = this.#believed;
    const suspected = this.#suspected;
    const forgotten = this.#forgotten;
    this.#suspected = undefined;
    if (!believed || !suspected) return false;
    this.#believed = undefined;
    const prepared = await prepareRepair(this.#options, believed, suspected, request.plans, facts);
    if (!prepared) return false;
    prepared.batch.expectGeneration(prepared.generation ?? 0);
    return this.#tryCommit(prepared, prepared.changed, forgotten);
  }

  /** False when the kernel refused, so that it is to be read what it holds. */
  async #tryCommit(prepared: Prepared, changed: ReadonlySet<string>, forgotten: number): Promise<boolean> {
    try {
      await this.#commit(prepared);
    } catch (error) {
      if (!(error instanceof NftError)) throw error;
      if (!isOutdated(error)) {
        this.#options.logger.error(error, 'Partial sync refused; reading the table back', this.#labels);
      }
      return false;
    }
    for (const key of changed) this.#refused.delete(key);
    this.#accept(prepared, forgotten);
    return true;
  }

  async #syncAll(request: SyncRequest, facts: AddressFacts): Promise<void> {
    this.#believed = undefined;
    this.#refused.clear();
    let isReplaced = false;
    let futileAttempts = 0;
    for (let attempt = 1; ; attempt++) {
      const forgotten = this.#forgotten;
      const prepared = await this.#prepareAll(request, facts, this.#refused, isReplaced);
      if (attempt <= strictAttempts) prepared.batch.expectGeneration(prepared.generation ?? 0);
      try {
        await this.#commit(prepared);
      } catch (error) {
        if (!(error instanceof NftError) || ++futileAttempts === maxAttempts) throw error;
        // Somebody may have written to the table since it was read: only what fails twice is held against a service.
        if (attempt === 1 || isOutdated(error) || isNobodysFault(error)) continue;
        if (await this.#setAside(error, prepared, request, facts)) futileAttempts = 0;
        else if (isReplaced) throw error;
        else isReplaced = true;
        continue;
      }
      if (isReplaced)
        this.#options.logger.info('Table could not be put right and was replaced', this.#labels);
      this.#accept(prepared, forgotten);
      await this.#removeIdle(prepared);
      return;
    }
  }

  #prepareAll(
    request: SyncRequest,
    facts: AddressFacts,
    without: ReadonlyMap<string, unknown>,
    isReplaced = false,
  ): Promise<Prepared> {
    const plans =
      without.size === 0 ? request.plans : new Map([...request.plans].filter(([key]) => !without.has(key)));
    return prepareFull(this.#options, plans, facts, isReplaced);
  }

  async #commit(prepared: Prepared): Promise<void> {
    if (prepared.batch.operations.length === 0) return;
    const { client, clock, logger, metrics } = this.#options;
    const start = clock.monotonic();
    this.#log.committing(prepared.batch);
    try {
      const { bytes } = await client.commit(prepared.batch);
      logger.v(4).info('Committed', {
        ...this.#labels,
        elements: prepared.elementOperations,
        bytes,
        ms: Math.round(clock.monotonic() - start),
      });
    } catch (error) {
      if (isOutdated(error)) throw error;
      metrics.nftablesSyncFailures.inc(this.#labels);
      await this.#log.refused(prepared.batch);
      throw error;
    }
  }

  /** Service ports that the kernel refused, and those that miss an address because another service port has it. */
  #notProgrammed(): SyncResult['refused'] {
    const refused = [...this.#refused].map(([key, error]) => ({ key, error }));
    return [...refused, ...this.#conflicts.filter(({ key }) => !this.#refused.has(key))];
  }

  /** `forgotten` is how often it was in doubt when the preparation began. */
  #accept({ believed, failures }: Prepared, forgotten: number): void {
    if (this.#forgotten === forgotten) this.#believed = believed;
    this.#conflicts = [...believed.shadow.conflicts()];
    for (const { key, error } of failures) this.#refused.set(key, error);
  }

  /** Leaves out the service ports that the kernel refuses from now on; false when it is none, or too many. */
  async #setAside(
    error: NftError,
    prepared: Prepared,
    request: SyncRequest,
    facts: AddressFacts,
  ): Promise<boolean> {
    const isAcceptedWithout = async (keys: readonly string[]) => {
      const without = new Map([...this.#refused, ...keys.map((key) => [key, error] as const)]);
      return this.#isAccepted(await this.#prepareAll(request, facts, without));
    };
    const culprits = await culpritsOf(error, prepared.believed.shadow, isAcceptedWithout);
    if (this.#refused.size + culprits.size > maxRefused) return false;
    for (const [key, reason] of culprits) {
      this.#refused.set(key, reason);
      const details = { ...this.#labels, servicePort: key };
      this.#options.logger.error(reason, 'Service port refused; programming the others', details);
    }
    return culprits.size > 0;
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
    if (idle.chains.length === 0) return;
    const [elements, chains] = [new Transaction(this.family), new Transaction(this.family)];
    for (const key of idle.handlers) elements.delete('handlers', key);
    chains.deleteChains(idle.chains);
    try {
      for (const batch of [elements.finish(), chains.finish()]) {
        if (batch.operations.length === 0) continue;
        this.#log.committing(batch);
        await this.#options.client.commit(batch);
      }
    } catch (error) {
      this.#options.metrics.nftablesCleanupFailures.inc(this.#labels);
      this.#options.logger.v(2).info('Unused chains could not be removed yet', { ...this.#labels, error });
    }
  }

  async #addressFacts({ serviceCIDRs }: SyncRequest): Promise<AddressFacts> {
    const { settings, interfaceAddresses, logger } = this.#options;
    if (settings.nodePortAddresses.matchAll) return { serviceCIDRs, interfaceAddresses: [] };
    try {
      this.#interfaceAddresses = await interfaceAddresses();
    } catch (error) {
      logger.error(error, 'Failed to list interface addresses; using those known', this.#labels);
    }
    return { serviceCIDRs, interfaceAddresses: this.#interfaceAddresses };
  }
}

/** The ruleset changed since it was read. */
function isOutdated(error: unknown): boolean {
  return error instanceof NftError && error.errno === 'ERESTART';
}

/** The kernel is short of something for now, or somebody else deleted what was to be deleted: no reason to begin anew. */
function isNobodysFault({ failures }: NftError): boolean {
  return failures.every(
    ({ errno, operation }) =>
      passingErrors.has(errno) || (errno === 'ENOENT' && operation?.verb === 'delete'),
  );
}
