import type { AnyTable } from '../../kernel/iptables/commands.ts';
import type { SavedTable } from '../../kernel/iptables/saved-table.ts';
import type { Clock } from '../../lib/clock.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import type { SyncRequest } from '../backend.ts';
import type { Difference } from '../inspection.ts';
import { savedRule } from '../jumps.ts';
import { sharedChain } from '../kubelet-chains.ts';
import { chainDifferences, missingJump, staleChain, type WantedRule } from '../rule-differences.ts';
import { canaryChain } from './canary.ts';
import { chainOf } from './chain-diff.ts';
import { type OwnChains, ownChains } from './compile.ts';
import { filterChains, filterHead, natChains, natHead } from './fixed-rules.ts';
import { jumps } from './jumps.ts';
import { isServiceChain } from './names.ts';
import type { NodeLines } from './node-lines.ts';
import { Ruleset } from './ruleset.ts';
import { serviceOfRule } from './service-of-rule.ts';
import type { IptablesSettings } from './settings.ts';
import type { Counters, TableName } from './tables.ts';

export type SavedTables = Readonly<Record<AnyTable, SavedTable>>;

export interface Comparison {
  readonly settings: IptablesSettings;
  readonly tables: SavedTables;
  readonly node: NodeLines;
  readonly counters: Counters;
  readonly clock: Clock;
}

/** What a full sync of this request would change about the tables. Comments do not count. */
export async function compare(
  request: Pick<SyncRequest, 'plans'>,
  comparison: Comparison,
): Promise<Difference[]> {
  const { settings, tables, counters, clock } = comparison;
  const ruleset = new Ruleset(settings, clock);
  // Whether the cluster is large decides on comments alone.
  const variant = { comments: true, countLocalhost: counters.localhostAccepted };
  await ruleset.replace(request.plans, variant);
  const { family } = settings;
  return [
    ...jumps.flatMap((jump) => missingJump(tables[jump.table], jump.from, savedRule(jump), family)),
    ...canaryDifferences(tables),
    ...(await sharedDifferences(ruleset, comparison)),
    ...(await ownDifferences(ruleset, comparison)),
  ];
}

function canaryDifferences(tables: SavedTables): Difference[] {
  const missing = Object.values(tables).filter((table) => !table.has(canaryChain));
  return missing.map(({ name }) => ({
    service: undefined,
    kind: 'chain',
    object: `${name} ${canaryChain}`,
    wanted: `:${canaryChain}`,
    found: undefined,
  }));
}

/** The chains that have lines of all service ports. */
async function sharedDifferences(ruleset: Ruleset, comparison: Comparison): Promise<Difference[]> {
  const { settings, tables, node, clock } = comparison;
  const { family } = settings;
  const timeSlice = new TimeSlice(clock);
  const differences: Difference[] = [];
  const wanted = {
    filter: wantedLines('filter', ruleset, filterHead(settings), node.filterTail),
    nat: wantedLines('nat', ruleset, natHead(settings), node.natTail),
  };
  const chains = { filter: filterChains(settings), nat: natChains };
  for (const name of ['filter', 'nat'] as const) {
    for (const chain of chains[name]) {
      const rules = wanted[name].get(chain) ?? [];
      const isShared = chain === sharedChain;
      const compared = {
        table: tables[name],
        chain,
        wanted: rules,
        family,
        isShared,
        serviceOf: serviceOfRule,
      };
      differences.push(...(await chainDifferences(compared, timeSlice)));
    }
  }
  return differences;
}

function wantedLines(
  table: TableName,
  { services }: Ruleset,
  head: readonly string[],
  tail: readonly string[],
): Map<string, WantedRule[]> {
  const chains = new Map<string, WantedRule[]>();
  const want = (lines: readonly string[], service: string | undefined) => {
    for (const line of lines) {
      const chain = chainOf(line);
      const rules = chains.get(chain);
      if (rules) rules.push({ line, service });
      else chains.set(chain, [{ line, service }]);
    }
  };
  want(head, undefined);
  for (const { key, dispatch } of services) want(dispatch[table], key);
  want(tail, undefined);
  return chains;
}

/** The chains that service ports have to themselves, and those that no service port has. */
async function ownDifferences(ruleset: Ruleset, comparison: Comparison): Promise<Difference[]> {
  const { settings, tables, clock } = comparison;
  const timeSlice = new TimeSlice(clock);
  const differences: Difference[] = [];
  const stale = new Set([...tables.nat.chains()].filter(isServiceChain));
  for (const service of ruleset.services) {
    const own = ownChains(service, settings);
    for (const chain of own.declared) stale.delete(chain);
    differences.push(...(await serviceDifferences(service.key, own, comparison, timeSlice)));
  }
  const used = stale.size > 0 ? usedByOthers(tables.nat) : new Set<string>();
  for (const chain of stale) {
    // A sync leaves those empty that it cannot remove.
    if (used.has(chain) && tables.nat.lines(chain).length === 0) continue;
    const [first] = tables.nat.rules(chain);
    differences.push(staleChain(tables.nat, chain, first && serviceOfRule(first.line)));
  }
  return differences;
}

async function serviceDifferences(
  service: string,
  own: OwnChains,
  { tables: { nat }, settings: { family } }: Comparison,
  timeSlice: TimeSlice,
): Promise<Difference[]> {
  const rules = Map.groupBy(own.rules(), chainOf);
  const differences: Difference[] = [];
  for (const chain of own.declared) {
    const wanted = (rules.get(chain) ?? []).map((line) => ({ line, service }));
    if (nat.has(chain)) {
      differences.push(...(await chainDifferences({ table: nat, chain, wanted, family }, timeSlice)));
      continue;
    }
    const text = [`:${chain}`, ...wanted.map(({ line }) => line)].join('\n');
    differences.push({ service, kind: 'chain', object: `nat ${chain}`, wanted: text, found: undefined });
  }
  return differences;
}

/** Chains that rules in chains of others lead to. */
function usedByOthers(nat: SavedTable): Set<string> {
  const ours: ReadonlySet<string> = new Set<string>(natChains);
  const used = new Set<string>();
  for (const chain of nat.chains()) {
    if (isServiceChain(chain) || ours.has(chain)) continue;
    for (const { rule } of nat.rules(chain)) if (rule.target) used.add(rule.target.name);
  }
  return used;
}
