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
   * A chain of filter that another program makes and writes into, too. Restore input can only make a chain that it
   * also empties, so this one is made by itself.
   */
  readonly sharedChain?: string;
}

/** What was found in a table. */
interface FoundTable {
  /** Rules of the kernel's chains, at least, as they are listed. */
  readonly rules: readonly string[];
  /** Undefined when they were not listed. */
  readonly chains?: ReadonlySet<string>;
}

/** What is missing in a table. */
interface Missing {
  readonly table: JumpTable;
  readonly chains: readonly string[];
  readonly jumps: readonly Jump[];
}

/**
 * Makes chains and jumps that are missing, all in one restore; those that are there are left where they are. If that is
 * refused, makes them one by one: rejects for a chain that cannot be made, resolves to the errors of jumps that cannot.
 */
export async function ensureJumps(commands: Commands, structure: JumpStructure): Promise<readonly Error[]> {
  const missing: Missing[] = [];
  for (const table of new Set(structure.jumps.map((jump) => jump.table))) {
    const found = await missingIn(commands, table, structure);
    if (found.chains.length + found.jumps.length > 0) missing.push(found);
  }
  if (missing.length === 0) return [];
  const { sharedChain } = structure;
  if (missing.some(({ jumps }) => jumps.some(({ to }) => to === sharedChain))) {
    await commands.createChain('filter', sharedChain ?? '');
  }
  try {
    await commands.restore(missing.flatMap(insertions));
    return [];
  } catch (error) {
    if (!(error instanceof CommandError) || error.isResourceProblem) throw error;
    return ensureOneByOne(commands, missing);
  }
}

async function missingIn(commands: Commands, table: JumpTable, structure: JumpStructure): Promise<Missing> {
  const { chains, sharedChain } = structure;
  const wanted = structure.jumps.filter((jump) => jump.table === table);
  const found = chains ? await listTable(commands, table) : await listSources(commands, table, wanted);
  const jumps: Jump[] = [];
  for (const jump of wanted) if (!(await isPresent(commands, jump, found))) jumps.push(jump);
  const needed = chains?.[table] ?? new Set(jumps.map(({ to }) => to).filter((to) => to !== sharedChain));
  const existing = found.chains ?? (jumps.length > 0 ? await chainNames(commands, table) : new Set());
  const isMissing = (chain: string) => !existing.has(chain);
  return { table, chains: jumps.length > 0 || chains ? [...needed].filter(isMissing) : [], jumps };
}

async function isPresent(commands: Commands, jump: Jump, { rules }: FoundTable): Promise<boolean> {
  if (rules.includes(savedRule(jump))) return true;
  // Another version may print the rule in other words, so that only the program can tell whether it is there.
  const mayBeThere = rules.some((rule) => leadsAlong(rule, jump));
  return mayBeThere && (await commands.ruleExists(jump.table, jump.from, ruleArguments(jump)));
}

/** The rules of every chain that jumps start from: in a table of many rules, these are few. */
async function listSources(
  commands: Commands,
  table: JumpTable,
  jumps: readonly Jump[],
): Promise<FoundTable> {
  const rules: string[] = [];
  for (const from of new Set(jumps.map((jump) => jump.from)))
    rules.push(...(await commands.rules(table, from)));
  return { rules };
}

/** Every chain, and the rules that lead to chains of Kubernetes, with one program. */
async function listTable(commands: Commands, table: JumpTable): Promise<Required<FoundTable>> {
  const chains = new Set<string>();
  const rules: string[] = [];
  await commands.save(table, (line) => {
    if (line.startsWith(':')) chains.add(line.slice(1).split(' ', 1)[0] ?? '');
    else if (line.startsWith('-A ') && line.includes('-j KUBE-')) rules.push(line);
  });
  return { chains, rules };
}

/** Restore input that puts each jump in front of its chain. A chain that exists is not declared: that would flush it. */
function insertions({ table, chains, jumps }: Missing): string[] {
  return tableInput(table, [
    ...chains.map((chain) => `:${chain} - [0:0]`),
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

/** Every chain of a table, whoever made it. */
export async function chainNames(commands: Commands, table: JumpTable): Promise<ReadonlySet<string>> {
  return (await listTable(commands, table)).chains;
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
