import { type Operation, tableOf } from './operation.ts';

/** Commits to remember: more than happen between reading a table and the commit based on it. */
const remembered = 64;

/**
 * The ruleset generations of our own commits and the tables that they changed. Every commit to any table raises the
 * generation, but our own commit to another table is no reason to read a table again.
 */
export class OwnCommits {
  readonly #tables = new Map<number, ReadonlySet<string>>();

  /** Records a successful commit. Ignores it when another program committed between these generations too. */
  note(before: number, after: number, operations: readonly Operation[]): void {
    if (after !== following(before)) return;
    this.#tables.set(after, tablesOf(operations));
    const [oldest] = this.#tables.keys();
    if (this.#tables.size > remembered && oldest !== undefined) this.#tables.delete(oldest);
  }

  /** The latest generation that only our own commits to other tables led to. */
  advance(generation: number, operations: readonly Operation[]): number {
    const tables = tablesOf(operations);
    for (let reached = generation; ; reached = following(reached)) {
      const next = this.#tables.get(following(reached));
      if (!next || [...tables].some((table) => next.has(table))) return reached;
    }
  }
}

/** The generation after the next commit. */
export function following(generation: number): number {
  return generation === 0xffffffff ? 1 : generation + 1;
}

function tablesOf(operations: readonly Operation[]): Set<string> {
  const tables = operations.map(tableOf).map(({ family, name }) => `${family} ${name}`);
  return new Set(tables);
}
