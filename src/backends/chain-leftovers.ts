import { MissingProgramError } from '../kernel/iptables/command-error.ts';
import { type AnyTable, Commands } from '../kernel/iptables/commands.ts';
import { type Flavour, flavourOf, legacyTables } from '../kernel/iptables/table-reader.ts';
import { NftBatch } from '../kernel/nft/batch.ts';
import type { NftClient } from '../kernel/nft/client.ts';
import type { TableRef } from '../kernel/nft/objects.ts';
import { tableExists } from '../kernel/nft/remove-table.ts';
import { runProgram } from '../kernel/program.ts';
import { systemFiles } from '../kernel/system-files.ts';
import { type ChainKernel, openChainKernel } from '../kernel/xtables/open.ts';
import { systemClock } from '../lib/clock.ts';
import { type Family, families } from '../model/ip.ts';
import type { ProgramContext } from './iptables-families.ts';
import { inTurn, type Leftover, type LeftoverSource } from './leftovers.ts';

/** Where a table of iptables is. */
export interface TablePlace {
  readonly family: Family;
  readonly flavour: Flavour;
}

/** Says which chains of a table are a mode's own. */
export type OwnChains = (table: AnyTable, chain: string, place: TablePlace) => boolean;

/** What it takes to look for chains and to remove them. */
export interface ChainContext extends ProgramContext {
  readonly kernel: ChainKernel;
}

const tableNames: readonly AnyTable[] = ['nat', 'filter', 'mangle'];
const builtIn: ReadonlySet<string> = new Set(['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']);

/**
 * The chains of a mode in the tables of iptables, of both kinds and families. Needs no program to look at them, nor to
 * remove those of iptables-nft.
 */
export function chainLeftovers(isOwn: OwnChains): LeftoverSource {
  return {
    find: ({ logger }) => withKernel(logger, (context) => findChains(isOwn, context)),
    remove: ({ logger }) => withKernel(logger, (context) => removeChains(isOwn, context)),
  };
}

/** Does the work with the kernel of this network namespace. */
export async function withKernel<T>(
  logger: ChainContext['logger'],
  work: (context: ChainContext) => Promise<T>,
): Promise<T> {
  const kernel = await openChainKernel(systemClock);
  try {
    return await work({ kernel, run: runProgram, files: systemFiles, clock: systemClock, logger });
  } finally {
    kernel.close();
  }
}

/** Lists own chains, the rules in them, and the rules of built-in chains that lead to them. */
export async function findChains(isOwn: OwnChains, context: ChainContext): Promise<Leftover[]> {
  const found: Leftover[] = [];
  for (const table of await readTables(isOwn, context)) {
    found.push(...leftoversIn(table, isOwn, await obstacleTo(table, context)));
  }
  return found;
}

/** The tables that have an own chain, with all their chains. */
export async function readTables(isOwn: OwnChains, context: ChainContext): Promise<FoundTable[]> {
  const tables: FoundTable[] = [];
  for (const family of families) {
    tables.push(...(await nftTables(family, isOwn, context.kernel.nft)));
    const legacy = legacyTablesOf(family, context).map((name) => legacyTable(family, name, context));
    tables.push(...legacy.filter((table) => hasOwn(table, table.chains.keys(), isOwn)));
  }
  return tables;
}

/**
 * Removes what `findChains` lists; each table, or with iptables-nft each family, in one transaction. A chain that a rule
 * of another program leads to is emptied and stays.
 */
export function removeChains(isOwn: OwnChains, context: ChainContext): Promise<void> {
  return inTurn(
    families.flatMap((family) => [
      () => removeNft(family, isOwn, context.kernel.nft),
      ...legacyTablesOf(family, context).map((name) => () => removeLegacy(family, name, isOwn, context)),
    ]),
  );
}

interface FoundRule {
  /** The chain that it jumps or goes to, if any. */
  readonly to: string | undefined;
  /** Set in tables of nf_tables. */
  readonly handle?: bigint;
  /** Set in a dump of a legacy program, as printed. */
  readonly line?: string;
}

/** A table of iptables, as far as chains and the ways between them are concerned. */
export interface FoundTable extends TablePlace {
  readonly name: AnyTable;
  readonly chains: ReadonlyMap<string, readonly FoundRule[]>;
}

/** What a removal does to a table. */
interface Removal {
  /** Own chains, all of which are emptied. */
  readonly chains: readonly string[];
  /** Rules of built-in chains that lead to own chains. */
  readonly jumps: readonly (FoundRule & { readonly from: string })[];
  /** Own chains that cannot be deleted, and a chain of another program that leads to each. */
  readonly held: ReadonlyMap<string, string>;
}

function removalOf(table: FoundTable, isOwnChain: OwnChains): Removal {
  const { name, chains } = table;
  const isOwn = (chain: string) => isOwnChain(name, chain, table);
  const own = [...chains.keys()].filter(isOwn);
  const jumps: (FoundRule & { from: string })[] = [];
  const held = new Map<string, string>();
  for (const [from, rules] of chains) {
    if (isOwn(from)) continue;
    for (const rule of rules) {
      if (rule.to === undefined || !isOwn(rule.to)) continue;
      if (builtIn.has(from)) jumps.push({ ...rule, from });
      else held.set(rule.to, from);
    }
  }
  return { chains: own, jumps, held };
}

/** The own chains of a table, and the rules in them and to them; with `stuck`, all cannot be removed. */
export function* leftoversIn(table: FoundTable, isOwn: OwnChains, stuck?: string): Generator<Leftover, void> {
  const { family, flavour, chains } = table;
  const removal = removalOf(table, isOwn);
  const place = `table ${table.name} (iptables-${flavour})`;
  const rest = { family, place, ...(stuck !== undefined && { stuck }) };
  for (const name of removal.chains) {
    const holder = removal.held.get(name);
    const held = holder === undefined ? {} : { stuck: `a rule of chain ${holder} leads to it` };
    yield { kind: 'iptables chain', name, count: 1, ...held, ...rest };
    const count = chains.get(name)?.length ?? 0;
    if (count > 0) yield { kind: 'iptables rule', name, count, ...rest };
  }
  for (const [name, { length }] of Map.groupBy(removal.jumps, ({ from, to }) => `${from} to ${to}`)) {
    yield { kind: 'iptables rule', name, count: length, ...rest };
  }
}

async function nftTables(family: Family, isOwn: OwnChains, nft: NftClient): Promise<FoundTable[]> {
  const tables: FoundTable[] = [];
  for (const name of tableNames) {
    const ref = nftTable(family, name);
    if (!(await tableExists(nft, ref))) continue;
    const names = (await nft.listChains(ref)).map((chain) => chain.name);
    // The rules of a large table take long to list.
    if (!hasOwn({ family, flavour: 'nft', name }, names, isOwn)) continue;
    const chains = new Map<string, FoundRule[]>(names.map((chain) => [chain, []]));
    for (const { chain, to, handle } of await nft.listRuleTargets(ref)) {
      chains.get(chain.name)?.push({ to, handle });
    }
    tables.push({ family, flavour: 'nft', name, chains });
  }
  return tables;
}

function nftTable(family: Family, name: AnyTable): TableRef {
  return { family: family === 'IPv4' ? 'ip' : 'ip6', name };
}

async function removeNft(family: Family, isOwn: OwnChains, nft: NftClient): Promise<void> {
  const batch = new NftBatch();
  for (const found of await nftTables(family, isOwn, nft)) {
    const table = nftTable(family, found.name);
    const { chains, jumps, held } = removalOf(found, isOwn);
    for (const { from, handle = 0n } of jumps) batch.delete('rule', { chain: { table, name: from }, handle });
    for (const name of chains) batch.flush('chain', { table, name });
    for (const name of chains) if (!held.has(name)) batch.delete('chain', { table, name });
  }
  await nft.commit(batch);
}

/** Names of the legacy tables that exist. To ask for another one would make the kernel create it. */
function legacyTablesOf(family: Family, { files }: ChainContext): AnyTable[] {
  const existing = legacyTables(files, family);
  return tableNames.filter((name) => existing.has(name));
}

function legacyTable(family: Family, name: AnyTable, { kernel }: ChainContext): FoundTable {
  const chains = [...kernel.readLegacy(family, name)].map(
    ([chain, targets]) => [chain, targets.map((to) => ({ to }))] as const,
  );
  return { family, flavour: 'legacy', name, chains: new Map(chains) };
}

/** Only the legacy program can change a legacy table rule by rule. Without it, does nothing. */
async function removeLegacy(
  family: Family,
  name: AnyTable,
  isOwn: OwnChains,
  context: ChainContext,
): Promise<void> {
  const table = legacyTable(family, name, context);
  if (!hasOwn(table, table.chains.keys(), isOwn)) return;
  const commands = await legacyCommands(family, context);
  if (!commands) return;
  const { chains, jumps, held } = removalOf(await dumpedTable(family, name, commands), isOwn);
  const lines = [
    `*${name}`,
    ...chains.map((chain) => `:${chain} - [0:0]`),
    ...jumps.map(({ line = '' }) => line.replace(/^-A/, '-D')),
    ...chains.filter((chain) => !held.has(chain)).map((chain) => `-X ${chain}`),
    'COMMIT',
  ];
  await commands.restore(
    lines.map((line) => `${line}\n`),
    name,
  );
}

async function dumpedTable(family: Family, name: AnyTable, commands: Commands): Promise<FoundTable> {
  const chains = new Map<string, FoundRule[]>();
  await commands.save(name, (line) => {
    const [, chain, rule] = /^(?::|-A )(\S+) (.*)$/.exec(line) ?? [];
    if (chain === undefined || rule === undefined) return;
    if (line.startsWith(':')) chains.set(chain, []);
    // A target that is a chain has no options, so it comes last.
    else chains.get(chain)?.push({ line, to: / -[jg] (\S+)$/.exec(line)?.[1] });
  });
  return { family, flavour: 'legacy', name, chains };
}

/** The programs of legacy iptables, under their own name or as `iptables`; undefined when they are not installed. */
async function legacyCommands(family: Family, context: ChainContext): Promise<Commands | undefined> {
  for (const variant of ['legacy', undefined] as const) {
    const commands = new Commands({ family, ...context, ...(variant && { variant }) });
    try {
      if (flavourOf(await commands.version()) === 'legacy') return commands;
    } catch (error) {
      if (!(error instanceof MissingProgramError)) throw error;
    }
  }
  return undefined;
}

/** Why nothing can be removed from a table; undefined when it can. */
async function obstacleTo(table: FoundTable, context: ChainContext): Promise<string | undefined> {
  const { family, flavour } = table;
  if (flavour === 'nft' || (await legacyCommands(family, context))) return undefined;
  const program = family === 'IPv4' ? 'iptables-legacy' : 'ip6tables-legacy';
  return `there is no ${program} here to remove rules of legacy iptables; use the full image`;
}

function hasOwn(
  table: Pick<FoundTable, 'name' | 'family' | 'flavour'>,
  chains: Iterable<string>,
  isOwn: OwnChains,
): boolean {
  return Iterator.from(chains).some((chain) => isOwn(table.name, chain, table));
}

/** The rules of one chain as text: as a program prints them, or with all bytes of what they match. */
export async function ruleTexts(table: FoundTable, chain: string, context: ChainContext): Promise<string[]> {
  const { family, flavour, name } = table;
  if (flavour === 'legacy') return (await legacyCommands(family, context))?.rules(name, chain) ?? [];
  const rules = await context.kernel.nft.listRules(nftTable(family, name), chain);
  return rules.map(({ exprs, comment = '' }) => {
    const foreign = exprs.filter((expr) => expr.kind === 'unknown');
    return [comment, ...foreign.map(({ data }) => Buffer.from(data).toString('latin1'))].join(' ');
  });
}
