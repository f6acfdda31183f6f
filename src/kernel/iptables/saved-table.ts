import { parseRule, type Rule } from './rule.ts';

/** A rule in a dump. */
export interface SavedRule {
  /** The line without its counters. */
  readonly line: string;
  /** Packets that it matched; 0 in a dump without counters. */
  readonly packets: number;
  readonly rule: Rule;
}

interface SavedLine {
  readonly line: string;
  readonly packets: number;
  parsed?: SavedRule;
}

const counted = /^\[(\d+):\d+\] /;

/**
 * One table as iptables-save prints it, taken line by line. Lines are kept as they are and understood when somebody
 * asks for the rules of their chain: a packet meets few chains of the thousands there are.
 */
export class SavedTable {
  readonly name: string;
  readonly #chains = new Map<string, SavedLine[]>();

  constructor(name: string) {
    this.name = name;
  }

  /** Lines that are neither chains nor rules say nothing. */
  take(text: string): void {
    if (text.startsWith(':')) {
      this.#linesOf(text.slice(1).split(' ', 1)[0] ?? '');
      return;
    }
    const counters = text.startsWith('[') ? counted.exec(text) : null;
    const line = counters ? text.slice(counters[0].length) : text;
    if (!line.startsWith('-A ')) return;
    const chain = line.slice(3).split(' ', 1)[0] ?? '';
    this.#linesOf(chain).push({ line, packets: Number(counters?.[1] ?? 0) });
  }

  chains(): Iterable<string> {
    return this.#chains.keys();
  }

  has(chain: string): boolean {
    return this.#chains.has(chain);
  }

  /** The `-A` lines of a chain; none when there is no such chain. */
  lines(chain: string): readonly string[] {
    return (this.#chains.get(chain) ?? []).map(({ line }) => line);
  }

  /** The rules of a chain, one after the other; none when there is no such chain. */
  *rules(chain: string): Generator<SavedRule, void> {
    for (const saved of this.#chains.get(chain) ?? []) {
      const { line, packets } = saved;
      saved.parsed ??= { line, packets, rule: parseRule(line) ?? { chain, matches: [], target: undefined } };
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
