import { describeHook, describeRules } from '../kernel/nft/describe-rule.ts';
import type { BaseChain, Chain, Rule, TableRef } from '../kernel/nft/objects.ts';
import type { Difference } from './inspection.ts';
import type { RuleBody } from './nft-fields.ts';

/** The wanted table, apart from the elements of its sets. */
export interface WantedLayout {
  readonly table: TableRef;
  /** Distinguishes our table from another one of the same name. */
  readonly stamp: string;
  readonly sets: Iterable<string>;
  readonly chains: Iterable<{
    readonly name: string;
    readonly base?: BaseChain;
    readonly rules: readonly RuleBody[];
  }>;
}

/** The layout that was found. */
export interface FoundLayout {
  /** Undefined when there is no such table. */
  readonly stamp: string | undefined;
  readonly sets: ReadonlySet<string>;
  /** By name. */
  readonly chains: ReadonlyMap<string, FoundChain>;
}

export interface FoundChain {
  readonly base: BaseChain | undefined;
  readonly rules: readonly Rule[];
}

/** Chains together with their rules, by name. */
export function chainsWithRules(chains: Iterable<Chain>, rules: readonly Rule[]): Map<string, FoundChain> {
  const byChain = Map.groupBy(rules, ({ chain }) => chain.name);
  return new Map([...chains].map(({ name, base }) => [name, { base, rules: byChain.get(name) ?? [] }]));
}

/** Lists the differences; with `isExact`, sets and chains that are not wanted count, too. */
export function layoutDifferences(wanted: WantedLayout, found: FoundLayout, isExact: boolean): Difference[] {
  const differences: Difference[] = [];
  const differ = (kind: string, object: string, should?: string, is?: string): void => {
    if (should !== is) differences.push({ service: undefined, kind, object, wanted: should, found: is });
  };
  const { family, name } = wanted.table;
  differ('table', `${family} ${name}`, wanted.stamp, found.stamp);
  const sets = new Set(wanted.sets);
  for (const set of isExact ? new Set([...sets, ...found.sets]) : sets) {
    differ('set', set, presence(sets.has(set)), presence(found.sets.has(set)));
  }
  const chains = new Map([...wanted.chains].map((chain) => [chain.name, chain]));
  for (const chain of isExact ? new Set([...chains.keys(), ...found.chains.keys()]) : chains.keys()) {
    const [ours, held] = [chains.get(chain), found.chains.get(chain)];
    differ('chain', chain, ours && describeHook(ours.base), held && describeHook(held.base));
    const rules = ours?.rules.map((exprs) => ({ exprs }));
    if (rules && held) differ('rules', chain, describeRules(rules), describeRules(held.rules));
  }
  return differences;
}

function presence(isThere: boolean): string | undefined {
  return isThere ? 'present' : undefined;
}
