import { CommandError } from '../../kernel/iptables/command-error.ts';
import type { Commands } from '../../kernel/iptables/commands.ts';
import type { Iptables, Jump, Table } from './kernel.ts';

/** Chains and jumps that will be asked for, so that those that are missing can be made in one go. */
export interface Structure {
  readonly chains: Readonly<Record<Table, readonly string[]>>;
  readonly jumps: readonly Jump[];
}

/** What was found in a table. */
interface FoundTable {
  readonly chains: Set<string>;
  /** Rules that lead to a chain of Kubernetes, as they are listed. */
  readonly rules: Set<string>;
  /** Chains that somebody wanted to be there since. */
  readonly asked: Set<string>;
}

/** Chains and jumps of one family, with as few programs as will do. */
export class IptablesPrograms implements Iptables {
  readonly #commands: Commands;
  readonly #structure: Structure | undefined;
  readonly #found = new Map<Table, FoundTable>();

  constructor(commands: Commands, structure?: Structure) {
    this.#commands = commands;
    this.#structure = structure;
  }

  async ensureChain(table: Table, chain: string): Promise<void> {
    // Asked for a second time, it is another sync that wants to know, and anything may have changed.
    if (this.#found.get(table)?.asked.has(chain)) this.#found.clear();
    const { chains, asked } = await this.#look(table);
    if (!chains.has(chain)) await this.#commands.createChain(table, chain);
    asked.add(chain);
  }

  async ensureJump(jump: Jump): Promise<void> {
    const { table, from } = jump;
    const { rules } = await this.#look(table);
    if (rules.has(jumpRule(jump)) || (await this.#commands.ruleExists(table, from, ruleOf(jump)))) return;
    await this.#commands.insertRule(table, from, ruleOf(jump));
  }

  /**
   * Removes chains with all their rules, and the jumps that lead to them; resolves to those that rules of others
   * still lead to, which are left empty. A few programs for everything: one for each chain and jump would be sixty.
   */
  async removeChains(
    table: Table,
    chains: readonly string[],
    jumps: readonly Jump[],
  ): Promise<readonly string[]> {
    const found = await this.#list(table);
    const ours = chains.filter((chain) => found.chains.has(chain));
    if (ours.length === 0) return [];
    const led = [...found.rules].filter((rule) => jumps.some((jump) => rule === jumpRule(jump)));
    const flushed = ours.map((chain) => `:${chain} - [0:0]`);
    await this.restore(tableInput(table, [...flushed, ...led.map((rule) => rule.replace(/^-A/, '-D'))]));
    const removed = ours.map((chain) => `-X ${chain}`);
    try {
      await this.restore(tableInput(table, removed));
      return [];
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
    }
    const left: string[] = [];
    for (const chain of ours) if (!(await this.#removeChain(table, chain))) left.push(chain);
    return left;
  }

  restore(input: string): Promise<void> {
    return this.#commands.restore([input]);
  }

  /** Throws when this node cannot use the programs of this family. */
  async check(): Promise<void> {
    await this.#commands.rules('nat', 'POSTROUTING');
  }

  /** Removes an empty chain; false when rules still lead to it. */
  async #removeChain(table: Table, chain: string): Promise<boolean> {
    try {
      await this.#commands.deleteChain(table, chain);
      return true;
    } catch (error) {
      if (error instanceof CommandError && error.isInUse) return false;
      throw error;
    }
  }

  /** What a table has, listed once per sync: asking for every chain and jump would take twenty programs. */
  async #look(table: Table): Promise<FoundTable> {
    const known = this.#found.get(table);
    if (known) return known;
    const found = await this.#list(table);
    this.#found.set(table, found);
    await this.#complete(table, found);
    return found;
  }

  /** Makes all that is missing with one program. When that fails, it fails again for what is to blame, one by one. */
  async #complete(table: Table, { chains, rules }: FoundTable): Promise<void> {
    if (!this.#structure) return;
    const missing = this.#structure.chains[table].filter((chain) => !chains.has(chain));
    const jumps = this.#structure.jumps
      .filter((jump) => jump.table === table)
      .map(jumpRule)
      .filter((rule) => !rules.has(rule));
    if (missing.length + jumps.length === 0) return;
    const made = missing.map((chain) => `:${chain} - [0:0]`);
    try {
      await this.restore(tableInput(table, [...made, ...jumps.map((rule) => rule.replace(/^-A/, '-I'))]));
    } catch (error) {
      if (error instanceof CommandError) return;
      throw error;
    }
    for (const chain of missing) chains.add(chain);
    for (const rule of jumps) rules.add(rule);
  }

  async #list(table: Table): Promise<FoundTable> {
    const chains = new Set<string>();
    const rules = new Set<string>();
    await this.#commands.save(table, (line) => {
      if (line.startsWith(':')) chains.add(line.slice(1).split(' ', 1)[0] ?? '');
      else if (line.startsWith('-A ') && line.includes('-j KUBE-')) rules.add(line);
    });
    return { chains, rules, asked: new Set() };
  }
}

function tableInput(table: Table, lines: readonly string[]): string {
  return [`*${table}`, ...lines, 'COMMIT', ''].join('\n');
}

function ruleOf({ to, comment }: Jump): string[] {
  return ['-m', 'comment', '--comment', comment, '-j', to];
}

/** The rule as the programs list it. */
export function jumpRule({ from, to, comment }: Jump): string {
  return `-A ${from} -m comment --comment "${comment}" -j ${to}`;
}
