import { canonicalRule } from '../kernel/iptables/canonical-rule.ts';
import type { SavedTable } from '../kernel/iptables/saved-table.ts';
import type { TimeSlice } from '../lib/time-slice.ts';
import type { Family } from '../model/ip.ts';
import type { Difference } from './inspection.ts';

/** A wanted rule line, and the service port that owns it. */
export interface WantedRule {
  readonly line: string;
  /** Key of a service port; undefined for rules that all share. */
  readonly service: string | undefined;
}

export interface ChainToCompare {
  readonly table: SavedTable;
  readonly chain: string;
  readonly wanted: readonly WantedRule[];
  readonly family: Family;
  /** Others may have rules in it, too. */
  readonly isShared?: boolean;
  /** The service port that a rule too many was written for. */
  readonly serviceOf?: (line: string) => string | undefined;
}

/**
 * Lists how a chain differs from its wanted rules: missing rules, extra rules, or the first rule out of place. Yields
 * to the event loop in long chains.
 */
export async function chainDifferences(
  compared: ChainToCompare,
  timeSlice: TimeSlice,
): Promise<Difference[]> {
  const { table, chain, wanted, family, isShared, serviceOf } = compared;
  const object = `${table.name} ${chain}`;
  const found = table.lines(chain);
  const spelled = {
    wanted: await canonicalRules(
      wanted.map(({ line }) => line),
      family,
      timeSlice,
    ),
    found: await canonicalRules(found, family, timeSlice),
  };
  const missing = lacking(spelled.wanted, spelled.found);
  const extra = isShared ? [] : lacking(spelled.found, spelled.wanted);
  const differences: Difference[] = [
    ...missing.map((i) => ruleDifference(object, wanted[i], undefined)),
    ...extra.map((i) => ({
      ...ruleDifference(object, undefined, found[i]),
      service: serviceOf?.(found[i] ?? ''),
    })),
  ];
  if (!table.has(chain)) {
    differences.unshift({ service: undefined, kind: 'chain', object, wanted: `:${chain}`, found: undefined });
  }
  if (differences.length > 0 || isShared) return differences;
  const misplaced = spelled.wanted.findIndex((text, i) => text !== spelled.found[i]);
  return misplaced < 0 ? [] : [ruleDifference(object, wanted[misplaced], found[misplaced], 'rule order')];
}

async function canonicalRules(
  lines: readonly string[],
  family: Family,
  timeSlice: TimeSlice,
): Promise<readonly string[]> {
  const rules: string[] = [];
  for (const line of lines) {
    if (timeSlice.isSpent) await timeSlice.yield();
    rules.push(canonicalRule(line, family));
  }
  return rules;
}

/** A chain that should not be there. */
export function staleChain(table: SavedTable, chain: string, service: string | undefined): Difference {
  const found = [`:${chain}`, ...table.lines(chain)].join('\n');
  return { service, kind: 'chain', object: `${table.name} ${chain}`, wanted: undefined, found };
}

/** Reports a rule that is missing from a chain of the kernel. */
export function missingJump(table: SavedTable, chain: string, line: string, family: Family): Difference[] {
  const wanted = canonicalRule(line, family);
  if (table.lines(chain).some((there) => canonicalRule(there, family) === wanted)) return [];
  return [ruleDifference(`${table.name} ${chain}`, { line, service: undefined }, undefined, 'jump')];
}

function ruleDifference(
  object: string,
  wanted: WantedRule | undefined,
  found: string | undefined,
  kind = 'rule',
): Difference {
  return { service: wanted?.service, kind, object, wanted: wanted?.line, found };
}

/** Places of those items that the others do not have, or have fewer of. */
function lacking(items: readonly string[], others: readonly string[]): number[] {
  const left = new Map<string, number>();
  for (const other of others) left.set(other, (left.get(other) ?? 0) + 1);
  return items.flatMap((item, i) => {
    const count = left.get(item) ?? 0;
    if (count === 0) return [i];
    left.set(item, count - 1);
    return [];
  });
}
