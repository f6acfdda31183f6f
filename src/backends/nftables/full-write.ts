import { NftError } from '../../kernel/nft/errors.ts';
import type { FullWrite, Remedy, Wanted, Written } from '../driver.ts';
import { type Commits, isOutdated } from './commits.ts';
import type { NftablesOptions } from './driver.ts';
import type { FastPath } from './fast-path.ts';
import { type Believed, type Prepared, prepareFull, writtenBy } from './prepare.ts';
import { culpritsOf } from './refusal.ts';

export interface FullTableWriteOptions extends Omit<NftablesOptions, 'fastPath'> {
  readonly commits: Commits;
  readonly fastPath: FastPath | undefined;
}

/** Stop isolating bad service ports after this many; the cause is then elsewhere. */
const maxCulprits = 100;

const passingErrors: ReadonlySet<string> = new Set(['ENOMEM', 'ENOBUFS', 'EIO', 'EINTR', 'EAGAIN']);

/** Writes the whole table, whatever it holds. */
export class FullTableWrite implements FullWrite<Believed> {
  readonly #options: FullTableWriteOptions;
  readonly #wanted: Wanted;
  /** Of the latest attempt. */
  #prepared: Prepared | undefined;
  #isFirst = true;
  /** The table is deleted and made again, since it could not be put right. */
  #isReplaced = false;

  constructor(options: FullTableWriteOptions, wanted: Wanted) {
    this.#options = options;
    this.#wanted = wanted;
  }

  async attempt(leftOut: ReadonlyMap<string, Error>): Promise<Written<Believed>> {
    const { commits, loopback, fastPath, logger, settings } = this.#options;
    this.#prepared = undefined;
    const prepared = await this.#prepare(leftOut, this.#isReplaced);
    // Only the first attempt insists on the ruleset not having changed since it was read: any change of any table
    // counts, that of the other family among them, so that insisting for long could mean never to get there.
    if (this.#isFirst) prepared.batch.expectGeneration(prepared.generation ?? 0);
    this.#prepared = prepared;
    await commits.commit(prepared);
    if (this.#isReplaced) {
      logger.info('Table could not be put right and was replaced', { ipFamily: settings.family });
    }
    await commits.removeIdle(prepared.idle);
    await fastPath?.ensure({ anew: prepared.believed.departed.size > 0 });
    await loopback?.update({ ...this.#wanted, changed: 'all' });
    return writtenBy(prepared);
  }

  async remedy(error: unknown, leftOut: ReadonlyMap<string, Error>): Promise<Remedy> {
    const prepared = this.#prepared;
    if (!(error instanceof NftError) || !prepared) return undefined;
    // Another program may have written to the table since it was read: only a second failure is held against a service.
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    if (isFirst || isOutdated(error) || isNobodysFault(error)) return 'again';
    const isAcceptedWithout = async (keys: readonly string[]) => {
      const without = new Map([...leftOut, ...keys.map((key) => [key, error] as const)]);
      return this.#options.commits.isAccepted(await this.#prepare(without, false));
    };
    const culprits = await culpritsOf(error, prepared.believed.shadow, isAcceptedWithout);
    if (culprits.size > 0 && leftOut.size + culprits.size <= maxCulprits) return culprits;
    if (this.#isReplaced) return undefined;
    this.#isReplaced = true;
    return 'again';
  }

  #prepare(leftOut: ReadonlyMap<string, unknown>, isReplaced: boolean): Promise<Prepared> {
    const all = this.#wanted.plans;
    const plans = leftOut.size === 0 ? all : new Map([...all].filter(([key]) => !leftOut.has(key)));
    return prepareFull(this.#options, { ...this.#wanted, plans }, isReplaced);
  }
}

/** Whether the kernel is short of something for now, or another program deleted what was to be deleted. */
function isNobodysFault({ failures }: NftError): boolean {
  return failures.every(
    ({ errno, operation }) =>
      passingErrors.has(errno) || (errno === 'ENOENT' && operation?.verb === 'delete'),
  );
}
