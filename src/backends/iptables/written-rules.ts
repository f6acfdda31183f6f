import type { AnyTable, Commands } from '../../kernel/iptables/commands.ts';
import { sharedChain } from '../kubelet-chains.ts';
import { jumps } from './jumps.ts';

/** Tables in the order in which they are looked at. */
const tables: readonly AnyTable[] = ['nat', 'filter', 'mangle'];

/** By how many entries tables of x_tables grew with what was written; `unknown` when there is no count of what was there. */
export type Growth = ReadonlyMap<string, number> | 'unknown';

/** Where a chain begins and where it ends, besides its rules. */
const entriesOfChain = 2;

/**
 * How many rules we wrote into each of our chains. That is enough to notice that another program flushed, removed or
 * added something, without depending on how a version of iptables prints rules.
 */
export class WrittenRules {
  readonly #chains = new Map<AnyTable, Map<string, number>>();
  readonly #onGrowth: (growth: Growth) => void;
  #epoch = 0;
  #isWriting = false;
  #hasJumps = false;
  /** False before the first write and after one that failed. */
  #isKnown = false;

  constructor(onGrowth: (growth: Growth) => void = () => {}) {
    this.#onGrowth = onGrowth;
  }

  /** Changes with everything that is written: a comparison that spans two epochs proves nothing. */
  get epoch(): number {
    return this.#epoch;
  }

  get isWriting(): boolean {
    return this.#isWriting;
  }

  /** Whether the chain is ours alone: how many rules a shared one has means nothing. */
  owns(table: string, chain: string): boolean {
    return chain !== sharedChain && this.#chains.get(table as AnyTable)?.has(chain) === true;
  }

  /** A chain that was made empty. */
  expectEmpty(table: AnyTable, chain: string): void {
    this.#onGrowth(new Map([[table, this.#set(table, chain, 0)]]));
  }

  /** The jumps from the kernel's chains are in place. */
  expectJumps(): void {
    this.#hasJumps = true;
  }

  /** Counts rules as `apply` writes them. Counts are valid only if it succeeds. */
  async during(input: Iterable<string>, apply: (input: Iterable<string>) => Promise<void>): Promise<void> {
    const written = new RestoreCount();
    this.#epoch++;
    this.#isWriting = true;
    try {
      await apply(written.countAlong(input));
      const growth = this.#adopt(written);
      this.#onGrowth(this.#isKnown ? growth : 'unknown');
      this.#isKnown = true;
    } catch (error) {
      this.#isKnown = false;
      throw error;
    } finally {
      this.#isWriting = false;
      this.#epoch++;
    }
  }

  /** Compares with the kernel. Resolves to kinds of difference, and how many of each; none while counts are not valid. */
  async differences(commands: Commands): Promise<ReadonlyMap<string, number>> {
    const differences = new Map<string, number>();
    if (!this.#isKnown) return differences;
    const note = (what: string) => differences.set(what, (differences.get(what) ?? 0) + 1);
    for (const table of tables) {
      const expected = this.#chains.get(table);
      if (!expected) continue;
      const found = new SavedTable();
      await commands.save(table, (line) => found.take(line));
      for (const [chain, count] of expected) {
        const rules = found.chains.get(chain);
        if (rules === undefined) note('chain deleted');
        else if (chain !== sharedChain && rules !== count) note('rules changed');
      }
      if (this.#hasJumps) for (const jump of found.missingJumps(table)) note(`jump to ${jump} deleted`);
    }
    return differences;
  }

  #chainsOf(table: AnyTable): Map<string, number> {
    const chains = this.#chains.get(table) ?? new Map<string, number>();
    this.#chains.set(table, chains);
    return chains;
  }

  /** Returns by how many entries each table grew. */
  #adopt(written: RestoreCount): Map<string, number> {
    const growth = new Map<string, number>();
    for (const [table, changes] of written.chains) {
      let entries = 0;
      for (const [chain, count] of changes) entries += this.#set(table, chain, count);
      growth.set(table, entries);
    }
    return growth;
  }

  /** Notes how many rules a chain has; returns by how many entries its table grew. */
  #set(table: AnyTable, chain: string, count: number | 'deleted'): number {
    const chains = this.#chainsOf(table);
    const before = chains.get(chain);
    if (count === 'deleted') chains.delete(chain);
    else chains.set(chain, count);
    const entriesOf = (rules: number | 'deleted' | undefined): number =>
      typeof rules === 'number' ? rules + entriesOfChain : 0;
    return entriesOf(count) - entriesOf(before);
  }
}

/** Counts the rules in restore input while it is passed on; pieces may end anywhere in a line. */
class RestoreCount {
  readonly chains = new Map<AnyTable, Map<string, number | 'deleted'>>();
  #current = new Map<string, number | 'deleted'>();
  #rest = '';

  *countAlong(input: Iterable<string>): Generator<string> {
    for (const text of input) {
      this.#take(text);
      yield text;
    }
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#takeLine(line);
  }

  #takeLine(line: string): void {
    if (line.startsWith('-A ')) {
      const chain = wordAt(line, 3);
      const count = this.#current.get(chain);
      this.#current.set(chain, (typeof count === 'number' ? count : 0) + 1);
    } else if (line.startsWith(':')) {
      this.#current.set(wordAt(line, 1), 0);
    } else if (line.startsWith('-X ')) {
      this.#current.set(wordAt(line, 3), 'deleted');
    } else if (line.startsWith('*')) {
      this.#current = new Map();
      this.chains.set(wordAt(line, 1) as AnyTable, this.#current);
    }
  }
}

/** What a dump says of one table. */
class SavedTable {
  readonly chains = new Map<string, number>();
  readonly #jumps = new Set<string>();

  take(line: string): void {
    if (line.startsWith(':')) {
      this.chains.set(wordAt(line, 1), 0);
      return;
    }
    if (!line.startsWith('-A ')) return;
    const chain = wordAt(line, 3);
    this.chains.set(chain, (this.chains.get(chain) ?? 0) + 1);
    const target = / -j (KUBE-\S+)$/.exec(line)?.[1];
    if (target !== undefined && !chain.startsWith('KUBE-')) this.#jumps.add(`${chain} ${target}`);
  }

  missingJumps(table: AnyTable): string[] {
    return jumps
      .filter((jump) => jump.table === table && !this.#jumps.has(`${jump.from} ${jump.to}`))
      .map(({ to }) => to);
  }
}

function wordAt(line: string, start: number): string {
  const end = line.indexOf(' ', start);
  return end < 0 ? line.slice(start) : line.slice(start, end);
}
