import type { Chain } from '../../kernel/nft/objects.ts';
import type { Bytes } from './bytes.ts';
import { elementsIn } from './element-diff.ts';
import { type ChainBody, fixedChains } from './fixed-chains.ts';
import { type HandlerNumbers, handlerIn } from './handler-numbers.ts';
import type { KernelState } from './kernel-state.ts';
import { fixedSets, isSourceSet, type SetName } from './layout.ts';
import type { NftablesSettings } from './settings.ts';
import {
  isSharedChain,
  numberedSetsOf,
  type SharedChainName,
  sharedChain,
  sharedChainNeeds,
} from './shared-chains.ts';
import type { Transaction } from './transaction.ts';

/** Sets and shared chains that are in the kernel, as far as we know. */
export interface Structure {
  readonly sets: Set<SetName>;
  readonly chains: Set<SharedChainName>;
}

/**
 * Creates the missing ones of the given shared chains, and the chains and sets they need. `present` are chains that the
 * kernel may hold besides the known ones. Returns the chains it created.
 */
export function extendStructure(
  known: Structure,
  names: Iterable<SharedChainName>,
  settings: NftablesSettings,
  transaction: Transaction,
  present: KernelState['chains'] = new Map(),
): SharedChainName[] {
  const made: SharedChainName[] = [];
  for (const name of names) {
    if (known.chains.has(name)) continue;
    const needs = sharedChainNeeds(name, settings);
    made.push(...extendStructure(known, needs.chains, settings, transaction, present), name);
    for (const set of [...needs.sets, ...numberedSetsOf(name)]) {
      if (!known.sets.has(set)) transaction.addSet(set);
      known.sets.add(set);
    }
    const body = sharedChain(name, settings);
    attachChain(body, present, transaction);
    transaction.refillChain(body);
    known.chains.add(name);
  }
  return made;
}

/** What the structure depends on besides settings. */
export interface Needs {
  readonly chains: Iterable<SharedChainName>;
  /** Connections to departed endpoints get a reset: the set `departed` exists. */
  readonly resetsDeparted: boolean;
}

/**
 * Writes the table, its fixed sets, all rules and the shared chains that are needed, whatever the kernel holds. Existing
 * sets keep their elements. Returns what exists afterwards.
 */
export function writeStructure(
  state: KernelState,
  needs: Needs,
  settings: NftablesSettings,
  transaction: Transaction,
): Structure {
  const known: Structure = { sets: new Set(state.sets), chains: new Set() };
  transaction.addTable(state.table === 'other');
  for (const set of setsFor(needs, settings)) {
    if (!known.sets.has(set)) transaction.addSet(set);
    known.sets.add(set);
  }
  if (settings.localhostNodePorts) transaction.addLoopbackCounters();
  const fixed = fixedChains(settings, needs.resetsDeparted);
  for (const body of fixed) attachChain(body, state.chains, transaction);
  for (const body of fixed) transaction.refillChain(body);
  extendStructure(known, needs.chains, settings, transaction, state.chains);
  if (!needs.resetsDeparted && known.sets.delete('departed')) {
    state.elements.delete('departed');
    transaction.deleteSet('departed');
  }
  return known;
}

function setsFor({ resetsDeparted }: Needs, { localhostNodePorts }: NftablesSettings): SetName[] {
  return [
    ...fixedSets,
    ...(localhostNodePorts ? (['loopback-nodeports'] as const) : []),
    ...(resetsDeparted ? (['departed'] as const) : []),
  ];
}

/** What no frontend needs any more. */
export interface Idle {
  readonly chains: readonly SharedChainName[];
  /** Keys of the elements of `handlers` that lead to them. */
  readonly handlers: readonly Bytes[];
  readonly sets: readonly SetName[];
}

export const nothingIdle: Idle = { chains: [], handlers: [], sets: [] };

/**
 * Removes idle chains from what was read, and idle sets from the structure, so that they are deleted after the commit:
 * during it, a packet may be between the lookup that returned a number and the one that uses it.
 */
export function takeIdle(
  state: KernelState,
  structure: Structure,
  numbers: HandlerNumbers,
  settings: NftablesSettings,
): Idle {
  const inUse = structure.chains;
  const chains = [...state.chains.keys()].filter((name) => isSharedChain(name) && !inUse.has(name));
  for (const chain of chains) numbers.retire(chain);
  const elements = elementsIn(state.elements, 'handlers');
  const handlers: Bytes[] = [];
  for (const [key, value] of elements) {
    const chain = handlerIn(value);
    if (chain === undefined || inUse.has(chain)) continue;
    elements.delete(key);
    handlers.push(key);
  }
  const sets = idleSets(structure, settings);
  for (const set of sets) structure.sets.delete(set);
  return { chains, handlers, sets };
}

/** Sets of allowed sources that no chain looks into. */
export function idleSets({ sets, chains }: Structure, settings: NftablesSettings): SetName[] {
  const needed = new Set([...chains].flatMap((name) => sharedChainNeeds(name, settings).sets));
  return [...sets].filter((set) => isSourceSet(set) && !needed.has(set));
}

/** Creates a chain without rules. A chain's hook cannot be changed, so a chain with another hook is replaced. */
function attachChain(body: ChainBody, chains: KernelState['chains'], transaction: Transaction): void {
  const present = chains.get(body.name);
  if (present && !isAttachedAs(present, body)) transaction.deleteChains([body.name]);
  transaction.addChain(body);
}

/** Whether a chain has the hook that it is to have. */
export function isAttachedAs({ base }: Chain, body: ChainBody): boolean {
  const wanted = body.base;
  if (!base || !wanted) return !base && !wanted;
  const isOpen = base.policy === undefined || base.policy === 'accept';
  return (
    isOpen && base.type === wanted.type && base.hook === wanted.hook && base.priority === wanted.priority
  );
}
