import type { NftBatch } from '../../kernel/nft/batch.ts';
import type { NftClient } from '../../kernel/nft/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { inGroups } from '../../lib/groups.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import { stableSlots } from '../../model/stable-table.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { Wanted, WantedChanges, Written } from '../driver.ts';
import { type DepartedKeys, departedKeys, writeDeparted } from './departed.ts';
import { EarlierPlacements } from './earlier.ts';
import { ElementDiff, type ElementMap, elementsIn } from './element-diff.ts';
import { HandlerNumbers, handlerElements } from './handler-numbers.ts';
import { type KernelState, readKernelState } from './kernel-state.ts';
import type { SetName } from './layout.ts';
import type { NftablesSettings } from './settings.ts';
import { Change, type EarlierOf, Shadow } from './shadow.ts';
import { type SharedChainName, sharedChain } from './shared-chains.ts';
import { staticElements, staticSets } from './static-elements.ts';
import { StickyNumbers } from './sticky-numbers.ts';
import {
  extendStructure,
  type Idle,
  nothingIdle,
  type Structure,
  takeIdle,
  writeStructure,
} from './structure.ts';
import { Transaction } from './transaction.ts';

/** What the kernel is believed to hold. */
export interface Believed {
  readonly shadow: Shadow;
  readonly structure: Structure;
  /** Elements that belong to no service. */
  readonly statics: ElementMap;
  /** Endpoints whose connections get a reset. */
  readonly departed: DepartedKeys;
}

/** A transaction to commit, and what is believed once it is committed. */
export interface Prepared {
  readonly batch: NftBatch;
  /** Generation of the ruleset that was read, if one was. */
  readonly generation?: number;
  readonly elementOperations: number;
  readonly believed: Believed;
  readonly failures: Change['failures'];
  /** What no frontend needs once this is committed, and a full sync then removes. */
  readonly idle: Idle;
  /** Shared chains that a service port needed before this is committed, and none does afterwards. */
  readonly released: ReadonlySet<SharedChainName>;
}

export interface PrepareOptions {
  readonly settings: NftablesSettings;
  readonly client: NftClient;
  readonly clock: Clock;
  /** See maxEndpointsToRead; for tests. */
  readonly endpointsToRead?: number;
}

/** A table of which nothing can be kept. */
const unrecognised: KernelState = { table: 'other', chains: new Map(), sets: new Set(), elements: new Map() };

/** Service ports that are placed in one go. */
const portsPerGroup = 50;

/**
 * From this many endpoints on, the maps that hold them are flushed and filled again, in the same transaction,
 * instead of being read and compared: the kernel walks a set from its start for every part of a dump, which takes it
 * 0.3 s for 100,000 elements and 12 s for 550,000, while writing those takes 1 s.
 */
const maxEndpointsToRead = 100_000;
const endpointMaps: readonly SetName[] = ['endpoints', 'nodeport-endpoints'];
/** The same holds for the slots of services for which a hash chooses. */
const slotMaps: readonly SetName[] = ['sticky-slots'];

/**
 * Reads the kernel and prepares the difference to all plans; with `isReplaced`, prepares a new table in place of any
 * old one.
 */
export async function prepareFull(
  options: PrepareOptions,
  wanted: Wanted,
  isReplaced = false,
): Promise<Prepared> {
  const { settings, client, clock } = options;
  const { plans } = wanted;
  const timeSlice = new TimeSlice(clock);
  const refilled = refilledSets(options, plans);
  const { id: generation } = await client.generation();
  const state = isReplaced ? unrecognised : await readKernelState(client, settings.family, refilled);
  const numbers = new StickyNumbers();
  const earlier = new EarlierPlacements(state.elements, numbers);
  const handlers = new HandlerNumbers(state.elements.get('handlers'));
  const shadow = new Shadow(settings, numbers, handlers);
  const placed = await placeAll(shadow, plans, (plan, frontends) => earlier.of(plan, frontends), timeSlice);
  const transaction = new Transaction(settings.family);
  const departed = departedKeys(wanted);
  const needs = { chains: placed.chains, resetsDeparted: departed.size > 0 };
  const structure = writeStructure(state, needs, settings, transaction);
  for (const set of refilled) transaction.flushSet(set);
  const idle = takeIdle(state, structure, handlers, settings);
  state.elements.delete('clients');
  const diff = new ElementDiff(transaction, state.elements);
  handlerElements(structure.chains, handlers, (set, key, value) => diff.wants(set, key, value));
  const statics = staticsOf(wanted, settings);
  writeStatics(transaction, diff, statics);
  for (const key of departed.values()) diff.wants('departed', key, '');
  await writeElements(diff, shadow, timeSlice);
  return {
    batch: transaction.finish(),
    generation,
    elementOperations: transaction.elementOperations,
    believed: { shadow, structure, statics, departed },
    failures: placed.failures,
    idle,
    released: new Set(),
  };
}

/**
 * Adds the difference that the changed keys make to the transaction. `believed` is invalid from then on, unless the
 * transaction is committed.
 */
export async function prepareChanges(
  { settings, clock }: PrepareOptions,
  believed: Believed,
  wanted: WantedChanges,
  transaction = new Transaction(settings.family),
): Promise<Prepared> {
  const { shadow, structure, departed } = believed;
  const timeSlice = new TimeSlice(clock);
  const change = new Change();
  for (const keys of inGroups(wanted.changed, portsPerGroup)) {
    shadow.update(keys, wanted.plans, change);
    if (timeSlice.isSpent) await timeSlice.yield();
  }
  const made = extendStructure(structure, change.chains, settings, transaction);
  handlerElements(made, shadow.handlers, (set, key, value) => transaction.add(set, key, value));
  for (const _ of shadow.diff(change, new ElementDiff(transaction))) {
    if (timeSlice.isSpent) await timeSlice.yield();
  }
  const statics = staticsOf(wanted, settings);
  writeStatics(transaction, new ElementDiff(transaction, new Map(believed.statics)), statics);
  writeDeparted(structure, departed, wanted, settings, transaction);
  return {
    batch: transaction.finish(),
    elementOperations: transaction.elementOperations,
    believed: { shadow, structure, statics, departed },
    failures: change.failures,
    idle: nothingIdle,
    released: change.released,
  };
}

/** Prepares a plan as the only one of a new table. Throws if it cannot be placed or encoded. */
export function prepareAlone(plan: ServicePlan, settings: NftablesSettings): void {
  const shadow = new Shadow(settings);
  const transaction = new Transaction(settings.family);
  const { key } = plan.port;
  const change = shadow.update([key], new Map([[key, plan]]));
  for (const { error } of change.failures) throw error;
  for (const chain of change.chains) transaction.refillChain(sharedChain(chain, settings));
  for (const _ of shadow.diff(change, new ElementDiff(transaction)));
  transaction.finish();
}

/** What a prepared transaction means once it is committed. */
export function writtenBy({ believed, failures }: Prepared): Written<Believed> {
  return {
    belief: believed,
    failures: new Map(failures.map(({ key, error }) => [key, error])),
  };
}

/** Places every plan with as little change as possible. Returns the shared chains that the placements need. */
export async function placeAll(
  shadow: Shadow,
  plans: ReadonlyMap<string, ServicePlan>,
  earlierOf: EarlierOf,
  timeSlice: TimeSlice,
): Promise<{ chains: Set<SharedChainName>; failures: Change['failures'] }> {
  const chains = new Set<SharedChainName>();
  const failures: Change['failures'][number][] = [];
  for (const keys of inGroups(plans.keys(), portsPerGroup)) {
    const change = shadow.update(keys, plans, new Change(), earlierOf);
    for (const chain of change.chains) chains.add(chain);
    failures.push(...change.failures);
    if (timeSlice.isSpent) await timeSlice.yield();
  }
  return { chains, failures };
}

/** Writes the elements of services that differ from the kernel's. */
async function writeElements(diff: ElementDiff, shadow: Shadow, timeSlice: TimeSlice): Promise<void> {
  for (const placement of shadow.placements()) {
    shadow.elementsOf(placement, (set, key, value) => diff.wants(set, key, value));
    if (timeSlice.isSpent) await timeSlice.yield();
  }
  for (const [set, key] of shadow.sharedElements()) {
    diff.wants(set, key, '');
    if (timeSlice.isSpent) await timeSlice.yield();
  }
  diff.finish();
}

/** Sets that are flushed and filled instead of being read; see maxEndpointsToRead. */
export function refilledSets(
  { endpointsToRead = maxEndpointsToRead }: PrepareOptions,
  plans: ReadonlyMap<string, ServicePlan>,
): ReadonlySet<SetName> {
  let [endpoints, hashed] = [0, 0];
  for (const { all, balance } of plans.values()) {
    endpoints += all.length;
    if (balance !== 'default') hashed++;
  }
  return new Set([
    ...(endpoints > endpointsToRead ? endpointMaps : []),
    ...(hashed * stableSlots > endpointsToRead ? slotMaps : []),
  ]);
}

/** Elements that belong to no service, of every set that has any. */
function staticsOf(wanted: Wanted, settings: NftablesSettings): ElementMap {
  const statics: ElementMap = new Map(staticSets.map((set) => [set, new Map()]));
  staticElements(wanted, settings, (set, key, value) => elementsIn(statics, set).set(key, value));
  return statics;
}

/** Replaces the elements of sets that differ: an interval set refuses an interval end before one that stays. */
export function writeStatics(transaction: Transaction, diff: ElementDiff, statics: ElementMap): void {
  for (const [set, elements] of statics) {
    const old = diff.take(set);
    if (old.size === elements.size && [...elements].every(([key, value]) => old.get(key) === value)) continue;
    transaction.flushSet(set);
    for (const [key, value] of elements) transaction.add(set, key, value);
  }
}
