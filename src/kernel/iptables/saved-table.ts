import { parseRule, type Rule } from './rule.ts';

/** A rule in a dump. */
export interface SavedRule {
  /** The line without its counters. */
  readonly line: string;
  readonly rule: Rule;
}

interface SavedLine {
  readonly line: string;
  parsed?: SavedRule;
}

const counters = /^\[\d+:\d+\] /;

/**
 * One table, built from the lines of iptables-save. Lines are parsed when the rules of their chain are requested: a
 * packet meets few of the thousands of chains.
 */
export class SavedTable {
  readonly name: string;
  readonly #chains = new Map<string, SavedLine[]>();

  constructor(name: string) {
    this.name = name;
  }

  /** Adds a line; ignores lines that are neither chains nor rules. */
  take(text: string): void {
    if (text.startsWith(':')) {
      this.#linesOf(text.slice(1).split(' ', 1)[0] ?? '');
      return;
    }
    const line = text.startsWith('[') ? text.replace(counters, '') : text;
    if (!line.startsWith('-A ')) return;
    const chain = line.slice(3).split(' ', 1)[0] ?? '';
    this.#linesOf(chain).push({ line });
  }

  chains(): Iterable<string> {
    return this.#chains.keys();
  }

  has(chain: string): boolean {
    return this.#chains.has(chain);
  }

  /** The `-A` lines of a chain; empty when there is no such chain. */
  lines(chain: string): readonly string[] {
    return (this.#chains.get(chain) ?? []).map(({ line }) => line);
  }

  /** The rules of a chain in order; empty when there is no such chain. */
  *rules(chain: string): Generator<SavedRule, void> {
    for (const saved of this.#chains.get(chain) ?? []) {
      const { line } = saved;
      saved.parsed ??= { line, rule: parseRule(line) ?? { chain, matches: [], target: undefined } };
      yield saved.parsed;
    }
  }

  #linesOf(chain: string): SavedLine[] {
    const known = this.#chains.get(chain);
    if (known) return known;
    const lines: SavedLine[] = [];
    this.#chains.set(chain, lines);
    return lines;
  }
}
