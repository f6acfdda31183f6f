import { CommandError } from '../kernel/iptables/command-error.ts';
import type { Commands } from '../kernel/iptables/commands.ts';

export type JumpTable = 'nat' | 'filter';

/** A rule that leads from a chain of the kernel to one of ours. */
export interface Jump {
  readonly table: JumpTable;
  readonly from: string;
  readonly to: string;
  /** Arguments that say which packets take it. */
  readonly match: readonly string[];
}

/** The arguments that give a rule a comment. */
export function comment(text: string): readonly string[] {
  return ['-m', 'comment', '--comment', text];
}

/** Jumps and chains that have to be there. */
export interface JumpStructure {
  /** In the order in which they are made: each goes in front of those before it. */
  readonly jumps: readonly Jump[];
  /** All chains that are to be there; absent: those that missing jumps lead to. */
  readonly chains?: Readonly<Record<JumpTable, readonly string[]>>;
  /**
   * A chain of filter that another program makes and writes into, too. It is made by a command that fails if the chain
   * exists: a declaration would empty it.
   */
  readonly sharedChain?: string;
}

/** What became of a structure. */
export interface EnsuredJumps {
  /** Of jumps that cannot be made. */
  readonly errors: readonly Error[];
  /** All chains that each table had before, whoever made them; a table that did not exist is missing. */
  readonly chains: ReadonlyMap<string, ReadonlySet<string>>;
}

/** What was found in a table. */
interface FoundTable {
  readonly chains: Set<string>;
  /** Rules that lead to chains of Kubernetes, as they are listed. */
  readonly rules: string[];
}

/** What is missing in a table. */
export interface Missing {
  readonly table: JumpTable;
  readonly chains: readonly string[];
  /** The chain that another program may make meanwhile is among `chains`. */
  readonly sharedChain: string | undefined;
  readonly jumps: readonly Jump[];
}

/** The chains of a kernel, and what is missing there. */
export interface FoundJumps extends Pick<EnsuredJumps, 'chains'> {
  readonly missing: readonly Missing[];
}

/**
 * Makes chains and jumps that are missing, all in one restore; those that are there are left where they are. If that is
 * refused, makes them one by one. Rejects for a chain that cannot be made.
 */
export async function ensureJumps(commands: Commands, structure: JumpStructure): Promise<EnsuredJumps> {
  const { chains, missing } = await findJumps(commands, structure);
  if (missing.length === 0) return { errors: [], chains };
  try {
    await commands.restore(insertionsOf(missing));
    return { errors: [], chains };
  } catch (error) {
    if (!(error instanceof CommandError) || error.isResourceProblem) throw error;
    return { errors: await ensureOneByOne(commands, missing), chains };
  }
}

/** Looks for chains and jumps, and makes nothing. */
export async function findJumps(commands: Commands, structure: JumpStructure): Promise<FoundJumps> {
  const found = await listTables(commands, structure);
  const chains = new Map([...found].map(([table, one]) => [table, one.chains]));
  const missing: Missing[] = [];
  for (const table of new Set(structure.jumps.map((jump) => jump.table))) {
    const one = await missingIn(commands, table, found.get(table) ?? emptyTable(), structure);
    if (one.chains.length + one.jumps.length > 0) missing.push(one);
  }
  return { chains, missing };
}

/** Restore input that makes what is missing. */
export function insertionsOf(missing: readonly Missing[]): string[] {
  return missing.flatMap(insertions);
}

async function missingIn(
  commands: Commands,
  table: JumpTable,
  { chains, rules }: FoundTable,
  structure: JumpStructure,
): Promise<Missing> {
  const jumps: Jump[] = [];
  for (const jump of structure.jumps) {
    if (jump.table === table && !(await isPresent(commands, jump, rules))) jumps.push(jump);
  }
  const needed = structure.chains?.[table] ?? new Set(jumps.map(({ to }) => to));
  const { sharedChain } = structure;
  return { table, chains: [...needed].filter((chain) => !chains.has(chain)), sharedChain, jumps };
}

async function isPresent(commands: Commands, jump: Jump, rules: readonly string[]): Promise<boolean> {
  if (rules.includes(savedRule(jump))) return true;
  // Another version may print the rule in other words, so that only the program can tell whether it is there.
  const mayBeThere = rules.some((rule) => leadsAlong(rule, jump));
  return mayBeThere && (await commands.ruleExists(jump.table, jump.from, ruleArguments(jump)));
}

/** What iptables-save (on nf_tables) prints instead of a table with rules that only the program nft understands. */
const unreadable = /^# Table `(\w+)' is incompatible/;

/** All tables that exist, with one program. */
async function listTables(
  commands: Commands,
  { jumps }: JumpStructure,
): Promise<ReadonlyMap<string, FoundTable>> {
  const tables = new Map<string, FoundTable>();
  let table = emptyTable();
  await commands.save('all', (line) => {
    const name = line.startsWith('*') ? line.slice(1) : unreadable.exec(line)?.[1];
    if (name !== undefined) {
      table = emptyTable();
      tables.set(name, table);
    } else if (line.startsWith(':')) table.chains.add(line.slice(1).split(' ', 1)[0] ?? '');
    else if (line.startsWith('-A ') && line.includes('-j KUBE-')) table.rules.push(line);
  });
  for (const [name, { chains, rules }] of tables) {
    if (chains.size > 0) continue;
    const sources = new Set(jumps.filter((jump) => jump.table === name).map(({ from }) => from));
    for (const from of sources) rules.push(...(await commands.rules(name as JumpTable, from)));
  }
  return tables;
}

function emptyTable(): FoundTable {
  return { chains: new Set(), rules: [] };
}

/** Restore input that puts each jump in front of its chain. A chain that exists is not declared: that would flush it. */
function insertions({ table, chains, sharedChain, jumps }: Missing): string[] {
  return tableInput(table, [
    ...chains.map((chain) => (chain === sharedChain ? `-N ${chain}` : `:${chain} - [0:0]`)),
    ...jumps.map((jump) => savedRule(jump).replace(/^-A/, '-I')),
  ]);
}

async function ensureOneByOne(commands: Commands, missing: readonly Missing[]): Promise<Error[]> {
  const errors: Error[] = [];
  for (const { table, chains } of missing) {
    for (const chain of chains) await commands.createChain(table, chain);
  }
  for (const jump of missing.flatMap(({ jumps }) => jumps)) {
    const { table, from, to } = jump;
    try {
      await commands.insertRule(table, from, ruleArguments(jump));
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      const what = `failed to add a jump from ${from} to ${to} in table ${table}`;
      errors.push(new Error(`${what}: ${error.message}`, { cause: error }));
    }
  }
  return errors;
}

/** A jump as arguments of a command. */
function ruleArguments({ match, to }: Jump): string[] {
  return [...match, '-j', to];
}

/** A jump as `-S` and `iptables-save` print it. */
export function savedRule(jump: Jump): string {
  const words = ruleArguments(jump).map((word) => (word.includes(' ') ? `"${word}"` : word));
  return `-A ${jump.from} ${words.join(' ')}`;
}

function leadsAlong(rule: string, { from, to }: Jump): boolean {
  return rule.startsWith(`-A ${from} `) && rule.endsWith(` -j ${to}`);
}

function tableInput(table: JumpTable, lines: readonly string[]): string[] {
  return [`*${table}\n`, ...lines.map((line) => `${line}\n`), 'COMMIT\n'];
}
