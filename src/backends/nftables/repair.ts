import { TimeSlice } from '../../lib/time-slice.ts';
import type { WantedChanges } from '../driver.ts';
import { ElementDiff } from './element-diff.ts';
import { handlerElements } from './handler-numbers.ts';
import { readKernelState } from './kernel-state.ts';
import type { SetName } from './layout.ts';
import {
  type Believed,
  type Prepared,
  type PrepareOptions,
  prepareChanges,
  refilledSets,
  writeStatics,
} from './prepare.ts';
import { writeStructure } from './structure.ts';
import { Transaction } from './transaction.ts';

/**
 * Prepares a repair of the table where only rules and the elements of suspected sets are in doubt, followed by the
 * changes. Reads only these sets. Resolves to undefined when more is wrong. The commit fails if the ruleset changes
 * meanwhile; `believed` is then invalid.
 */
export async function prepareRepair(
  options: PrepareOptions,
  believed: Believed,
  suspected: ReadonlySet<SetName>,
  wanted: WantedChanges,
): Promise<Prepared | undefined> {
  const { settings, client } = options;
  const needed = [...believed.structure.sets];
  if ([...refilledSets(options, wanted.plans)].some((set) => suspected.has(set))) return undefined;
  const { id: generation } = await client.generation();
  const unread = new Set(needed.filter((set) => !suspected.has(set)));
  const state = await readKernelState(client, settings.family, unread);
  if (state.table !== 'ours' || !needed.every((set) => state.sets.has(set))) return undefined;
  const transaction = new Transaction(settings.family);
  const { chains, sets } = believed.structure;
  const needs = { chains, resetsDeparted: sets.has('departed') };
  const structure = writeStructure(state, needs, settings, transaction);
  const diff = new ElementDiff(transaction, state.elements);
  writeStatics(transaction, diff, new Map([...believed.statics].filter(([set]) => suspected.has(set))));
  await restoreElements(believed, suspected, diff, options);
  transaction.endPart();
  const prepared = await prepareChanges(options, { ...believed, structure }, wanted, transaction);
  prepared.batch.expectGeneration(generation);
  return prepared;
}

async function restoreElements(
  { shadow, structure, departed }: Believed,
  suspected: ReadonlySet<SetName>,
  diff: ElementDiff,
  { clock }: PrepareOptions,
): Promise<void> {
  if (suspected.size === 0) return;
  const timeSlice = new TimeSlice(clock);
  const want = (set: SetName, key: string, value: string): void => {
    if (suspected.has(set)) diff.wants(set, key, value);
  };
  for (const placement of shadow.placements()) {
    shadow.elementsOf(placement, want);
    if (timeSlice.isSpent) await timeSlice.yield();
  }
  for (const [set, key] of shadow.sharedElements()) want(set, key, '');
  for (const key of departed.values()) want('departed', key, '');
  handlerElements(structure.chains, shadow.handlers, want);
  diff.finish();
}
