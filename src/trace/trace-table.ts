import { randomBytes } from 'node:crypto';
import { NftBatch } from '../kernel/nft/batch.ts';
import type { NftClient } from '../kernel/nft/client.ts';
import { NftError } from '../kernel/nft/errors.ts';
import type { Chain, Hook, Table } from '../kernel/nft/objects.ts';
import { families } from '../model/ip.ts';
import { watchingTables } from '../model/watching-table.ts';
import type { Interest } from './interest.ts';
import {
  arrivalOf,
  interestRule,
  MARK_CHAIN,
  markRule,
  seenSet,
  unseenChain,
  unseenRule,
} from './trace-rules.ts';

/** Unique to this process, because others may trace at the same time, also from containers with equal process ids. */
export const TRACE_TABLE = `${watchingTables.trace}${process.pid}-${randomBytes(3).toString('hex')}`;

const hooks: readonly Hook[] = ['prerouting', 'input', 'forward', 'output', 'postrouting'];
/** Where a packet can begin its way: these hooks have the rules that choose packets. */
const beginnings: readonly Hook[] = ['prerouting', 'output'];

/**
 * Every hook has two chains of ours, before and after all others. They have no rules there, but a trace shows that a
 * packet passed them: so it can be told between which two places a packet got lost.
 */
export type Place = 'first' | 'last';
const priorities: Readonly<Record<Place, number>> = { first: -0x80000000, last: 0x7ffffffe };
/** Before conntrack (-200), its defragmentation (-400) and the rules of others that come before it. */
const beginningPriority = -500;

/** The hook and the place of a chain of the trace table; undefined for its other chains. */
export function placeOf(chain: string): { readonly hook: Hook; readonly place: Place } | undefined {
  const [name, place] = chain.split('-');
  const hook = hooks.find((known) => known === name);
  return hook && (place === 'first' || place === 'last') ? { hook, place } : undefined;
}

export interface TraceLimits {
  /** The kernel traces the first packet of this many connections, and never more. */
  readonly packets: number;
}

/**
 * Runs `work` while the kernel traces the first packets of connections; removes the table afterwards. After
 * `stopMarking`, packets under way are still traced to their end. Where the kernel
 * can (5.12 and later), it removes the table itself when this process ends in any way. Rejects with NftError.
 */
export async function whileTraced<T>(
  nft: Pick<NftClient, 'commit'>,
  interests: readonly Interest[],
  limits: TraceLimits,
  work: (stopMarking: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const table: Table = { family: 'inet', name: TRACE_TABLE };
  await addTable(nft, table, interests, limits);
  try {
    return await work(() => stopMarking(nft, table));
  } finally {
    await nft.commit(new NftBatch().delete('table', table));
  }
}

async function stopMarking(nft: Pick<NftClient, 'commit'>, table: Table): Promise<void> {
  const batch = new NftBatch();
  for (const hook of beginnings) batch.flush('chain', { table, name: `${hook}-first` });
  await nft.commit(batch);
}

async function addTable(
  nft: Pick<NftClient, 'commit'>,
  table: Table,
  interests: readonly Interest[],
  limits: TraceLimits,
): Promise<void> {
  try {
    await nft.commit(traceBatch({ ...table, isOwned: true }, interests, limits));
  } catch (error) {
    const isOlderKernel = error instanceof NftError && ['EINVAL', 'EOPNOTSUPP'].includes(error.errno);
    if (!isOlderKernel) throw error;
    await nft.commit(traceBatch(table, interests, limits));
  }
}

function traceBatch(table: Table, interests: readonly Interest[], { packets }: TraceLimits): NftBatch {
  const batch = new NftBatch().add('table', table);
  const mark: Chain = { table, name: MARK_CHAIN };
  batch.add('chain', mark).add('rule', { chain: mark, exprs: markRule(packets) });
  for (const family of families) {
    const seen = seenSet(table, family);
    const chain: Chain = { table, name: unseenChain(family) };
    batch
      .add('set', seen)
      .add('chain', chain)
      .add('rule', { chain, exprs: unseenRule(family, seen.name) });
  }
  for (const chain of observers(table)) batch.add('chain', chain);
  for (const hook of beginnings) {
    const chain = { table, name: `${hook}-first` };
    for (const interest of interests) {
      if (hook !== 'output' && interest.source === 'node') continue;
      batch.add('rule', { chain, exprs: [...arrivalOf(hook), ...interestRule(interest)] });
    }
  }
  return batch;
}

function observers(table: Table): Chain[] {
  return hooks.flatMap((hook) =>
    (['first', 'last'] as const).map((place) => {
      const isBeginning = place === 'first' && beginnings.includes(hook);
      const priority = isBeginning ? beginningPriority : priorities[place];
      return { table, name: `${hook}-${place}`, base: { type: 'filter' as const, hook, priority } };
    }),
  );
}
