import { TimeSlice } from '../../lib/time-slice.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
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
import type { AddressFacts } from './static-elements.ts';
import { writeStructure } from './structure.ts';
import { Transaction } from './transaction.ts';

/**
 * Prepares what brings the table back to what is believed, where only rules and the elements of the suspected sets
 * are in doubt, and then on to the plans: reading a few sets instead of all. Undefined when more is wrong than that.
 * What was believed is no longer valid unless it is committed.
 */
export async function prepareRepair(
  options: PrepareOptions,
  believed: Believed,
  suspected: ReadonlySet<SetName>,
  plans: ReadonlyMap<string, ServicePlan>,
  facts: AddressFacts,
): Promise<(Prepared & { readonly changed: ReadonlySet<string> }) | undefined> {
  const { settings, client } = options;
  const { shadow } = believed;
  const needed = [...believed.structure.sets];
  if ([...refilledSets(options, plans)].some((set) => suspected.has(set))) return undefined;
  const { id: generation } = await client.generation();
  const unread = new Set(needed.filter((set) => !suspected.has(set)));
  const state = await readKernelState(client, settings.family, unread);
  if (state.table !== 'ours' || !needed.every((set) => state.sets.has(set))) return undefined;
  const transaction = new Transaction(settings.family);
  const structure = writeStructure(state, believed.structure.chains, settings, transaction);
  const diff = new ElementDiff(transaction, state.elements);
  writeStatics(transaction, diff, new Map([...believed.statics].filter(([set]) => suspected.has(set))));
  await restoreElements(believed, suspected, diff, options);
  transaction.endPart();
  const changed = shadow.outdated(plans);
  const known = { ...believed, structure };
  const prepared = await prepareChanges(options, known, { plans, changed }, facts, transaction);
  return { ...prepared, generation, changed };
}

async function restoreElements(
  { shadow, structure }: Believed,
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
  handlerElements(structure.chains, shadow.handlers, want);
  diff.finish();
}
