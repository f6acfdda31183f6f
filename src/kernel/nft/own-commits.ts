import { type Operation, tableOf } from './operation.ts';

/** Commits that are remembered: those between the reading of a table and the commit that follows from it. */
const remembered = 64;

/**
 * The ruleset generations that our own commits made, and the tables they were about. Any commit to any table raises
 * the generation; one of our own to another table is no reason to read ours again.
 */
export class OwnCommits {
  readonly #tables = new Map<number, ReadonlySet<string>>();

  /** A commit succeeded between these generations; whose they are can be told only if there is one. */
  note(before: number, after: number, operations: readonly Operation[]): void {
    if (after !== following(before)) return;
    this.#tables.set(after, tablesOf(operations));
    const [oldest] = this.#tables.keys();
    if (this.#tables.size > remembered && oldest !== undefined) this.#tables.delete(oldest);
  }

  /** The generation up to which nothing happened but commits of our own to other tables. */
  advance(generation: number, operations: readonly Operation[]): number {
    const tables = tablesOf(operations);
    for (let reached = generation; ; reached = following(reached)) {
      const next = this.#tables.get(following(reached));
      if (!next || [...tables].some((table) => next.has(table))) return reached;
    }
  }
}

/** The generation that a commit makes of this one. */
export function following(generation: number): number {
  return generation === 0xffffffff ? 1 : generation + 1;
}

function tablesOf(operations: readonly Operation[]): Set<string> {
  const tables = operations.map(tableOf).map(({ family, name }) => `${family} ${name}`);
  return new Set(tables);
}
