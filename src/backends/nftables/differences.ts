import type { Rule } from '../../kernel/nft/objects.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import type { Wanted } from '../driver.ts';
import type { Difference } from '../inspection.ts';
import { chainsWithRules, layoutDifferences } from '../nft-layout-differences.ts';
import { departedKeys } from './departed.ts';
import { EarlierPlacements } from './earlier.ts';
import { ElementDiff } from './element-diff.ts';
import { ElementDifferences } from './element-differences.ts';
import { fixedChains } from './fixed-chains.ts';
import { HandlerNumbers, handlerElements } from './handler-numbers.ts';
import { type KernelState, readKernelState } from './kernel-state.ts';
import { layoutStamp, tableOf } from './layout.ts';
import { type PrepareOptions, placeAll } from './prepare.ts';
import type { NftablesSettings } from './settings.ts';
import { Shadow } from './shadow.ts';
import { sharedChain } from './shared-chains.ts';
import { staticElements } from './static-elements.ts';
import { StickyNumbers } from './sticky-numbers.ts';
import { type Structure, takeIdle, writeStructure } from './structure.ts';
import { Transaction } from './transaction.ts';

/**
 * Lists what a full sync would change, with the code of a full sync, and writes nothing. Slots and numbers are taken
 * as they are. Shared chains that nothing refers to do not count: a later sync removes them.
 */
export async function tableDifferences(
  { client, settings, clock }: PrepareOptions,
  wanted: Wanted,
): Promise<Difference[]> {
  const timeSlice = new TimeSlice(clock);
  const state = await readKernelState(client, settings.family);
  const rules = await client.listRules(tableOf(settings.family));
  const numbers = new StickyNumbers();
  const earlier = new EarlierPlacements(state.elements, numbers);
  const handlers = new HandlerNumbers(state.elements.get('handlers'));
  const shadow = new Shadow(settings, numbers, handlers);
  const placed = await placeAll(
    shadow,
    wanted.plans,
    (plan, frontends) => earlier.of(plan, frontends),
    timeSlice,
  );
  const resetsDeparted = wanted.departed ? wanted.departed.size > 0 : state.sets.has('departed');
  const needs = { chains: placed.chains, resetsDeparted };
  const structure = writeStructure(state, needs, settings, new Transaction(settings.family));
  takeIdle(state, structure, handlers, settings);
  state.elements.delete('clients');
  // Only a running proxy knows which endpoints are gone.
  if (!wanted.departed) state.elements.delete('departed');
  return [
    ...structureDifferences(state, structure, rules, settings),
    ...(await elementDifferences(state, structure, shadow, wanted, timeSlice)),
  ];
}

async function elementDifferences(
  state: KernelState,
  structure: Structure,
  shadow: Shadow,
  wanted: Wanted,
  timeSlice: TimeSlice,
): Promise<Difference[]> {
  const found = new ElementDifferences(shadow.settings.family);
  const diff = new ElementDiff(found, state.elements);
  const want = diff.wants.bind(diff);
  handlerElements(structure.chains, shadow.handlers, want);
  staticElements(wanted, shadow.settings, want);
  for (const [set, key] of shadow.sharedElements()) want(set, key, '');
  for (const key of departedKeys(wanted).values()) want('departed', key, '');
  for (const placement of shadow.placements()) {
    found.ownedBy(placement);
    shadow.elementsOf(placement, want);
    if (timeSlice.isSpent) await timeSlice.yield();
  }
  found.ownedBy(undefined);
  diff.finish();
  return found.list();
}

function structureDifferences(
  state: KernelState,
  structure: Structure,
  rules: readonly Rule[],
  settings: NftablesSettings,
): Difference[] {
  const stamps = { absent: undefined, other: 'another layout', ours: layoutStamp };
  const wanted = {
    table: tableOf(settings.family),
    stamp: layoutStamp,
    sets: structure.sets,
    chains: [
      ...fixedChains(settings, structure.sets.has('departed')),
      ...[...structure.chains].map((one) => sharedChain(one, settings)),
    ],
  };
  const chains = chainsWithRules(state.chains.values(), rules);
  return layoutDifferences(wanted, { stamp: stamps[state.table], sets: state.sets, chains }, false);
}
