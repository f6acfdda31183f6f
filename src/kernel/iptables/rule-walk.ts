import type { Clock } from '../../lib/clock.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import { optionOf, type Rule, type RuleTarget } from './rule.ts';
import {
  affinityOf,
  chanceOf,
  type MatchFacts,
  parseMark,
  RuleNotUnderstoodError,
  type RulePacket,
} from './rule-match.ts';
import type { SavedTable } from './saved-table.ts';

/** Where a packet leaves a table, and how likely it does so there. */
export interface TableEnd {
  readonly probability: number;
  readonly mark: number;
  /** `through`: no rule of ours ended its way. */
  readonly verdict: 'through' | 'accept' | 'drop' | 'reject' | 'masquerade' | 'rewrite';
  /** The new destination when it was rewritten: `10.0.0.1:80`. */
  readonly to?: string;
}

/** How likely a packet is at a place, by the mark that it carries. */
type Marked = Map<number, number>;

/** Chains of the kernel may only lead this deep; the legacy tables go somewhat further. */
const maxDepth = 64;
/** More rules than any packet meets: tables that lead it in circles are not the kernel's. */
const maxRules = 2_000_000;

const verdicts: Readonly<Record<string, TableEnd['verdict']>> = {
  ACCEPT: 'accept',
  DROP: 'drop',
  REJECT: 'reject',
  MASQUERADE: 'masquerade',
  DNAT: 'rewrite',
};

/**
 * Leads one packet through tables as the kernel would. At a random match it goes both ways. In the kernel's own chains
 * only the rules that jump to one of `entries` are followed: what other software does is not told here.
 */
export class RuleWalk {
  /** Rules that matched, in the packet's order, as iptables takes them; other lines are comments. */
  readonly evidence: string[] = [];
  /** For how long the rules send a client back to the endpoint it knows; 0 when they do not. */
  affinitySeconds = 0;
  readonly #facts: MatchFacts;
  readonly #entries: ReadonlySet<string>;
  readonly #timeSlice: TimeSlice;
  readonly #seen = new Set<string>();
  #rules = 0;

  constructor(facts: MatchFacts, entries: ReadonlySet<string>, clock: Clock) {
    this.#facts = facts;
    this.#entries = entries;
    this.#timeSlice = new TimeSlice(clock);
  }

  /** The ends of a packet that enters a chain of the kernel; their probabilities sum up to 1. */
  async enter(table: SavedTable, chain: string, packet: RulePacket): Promise<TableEnd[]> {
    const ends: TableEnd[] = [];
    const through = await this.#walk({ table, packet, ends }, chain, new Map([[packet.mark, 1]]), 0);
    for (const [mark, probability] of through) ends.push({ probability, mark, verdict: 'through' });
    return ends;
  }

  /** Adds a line to the evidence unless it is there. */
  note(line: string): void {
    if (this.#seen.has(line)) return;
    this.#seen.add(line);
    this.evidence.push(line);
  }

  /** What comes out of a chain at its end, or returns from it. */
  async #walk(visit: Visit, chain: string, entering: Marked, depth: number): Promise<Marked> {
    if (depth > maxDepth) throw this.#confusion('chains that lead in circles', visit.table, chain);
    let here = entering;
    const leaving: Marked = new Map();
    for (const { rule, line } of visit.table.rules(chain)) {
      if (here.size === 0) break;
      if (depth === 0 && !this.#entries.has(rule.target?.name ?? '')) continue;
      if (++this.#rules > maxRules) throw this.#confusion('more rules than can be', visit.table, chain);
      if (this.#timeSlice.isSpent) await this.#timeSlice.yield();
      const { matched, rest } = this.#match(visit, rule, line, here);
      here = rest;
      if (matched.size > 0) await this.#act(visit, rule, line, matched, { here, leaving, depth });
    }
    for (const [mark, probability] of here) add(leaving, mark, probability);
    return leaving;
  }

  #match(visit: Visit, rule: Rule, line: string, here: Marked): { matched: Marked; rest: Marked } {
    const matched: Marked = new Map();
    const rest: Marked = new Map();
    for (const [mark, probability] of here) {
      const chance = chanceOf(rule, { ...visit.packet, mark }, this.#facts);
      if (typeof chance === 'string') throw this.#notUnderstood(visit.table, line, chance);
      const seconds = chance > 0 ? affinityOf(rule) : undefined;
      if (seconds !== undefined) this.#remember(seconds);
      const likely = seconds === undefined ? chance : 0;
      if (likely > 0) add(matched, mark, probability * likely);
      if (likely < 1) add(rest, mark, probability * (1 - likely));
    }
    if (matched.size > 0) this.note(`-t ${visit.table.name} ${line}`);
    return { matched, rest };
  }

  async #act(visit: Visit, rule: Rule, line: string, matched: Marked, place: Place): Promise<void> {
    const { here, leaving, depth } = place;
    const { target } = rule;
    if (!target) return merge(here, matched);
    if (target.name === 'RETURN') return merge(leaving, matched);
    if (target.name === 'MARK') {
      for (const [mark, probability] of matched) {
        const marked = markedBy(target, mark);
        if (marked === undefined) throw this.#notUnderstood(visit.table, line, '-j MARK with such options');
        add(here, marked, probability);
      }
      return;
    }
    const verdict = verdicts[target.name];
    if (verdict) return this.#end(visit, line, target, verdict, matched);
    if (!visit.table.has(target.name)) throw this.#notUnderstood(visit.table, line, `-j ${target.name}`);
    merge(target.isGoto ? leaving : here, await this.#walk(visit, target.name, matched, depth + 1));
  }

  #end(
    { table, ends }: Visit,
    line: string,
    target: RuleTarget,
    verdict: TableEnd['verdict'],
    matched: Marked,
  ): void {
    const to = optionOf(target, '--to-destination')?.values[0];
    if (verdict === 'rewrite' && to === undefined) throw this.#notUnderstood(table, line, 'DNAT to nowhere');
    for (const [mark, probability] of matched) {
      ends.push({ probability, mark, verdict, ...(to !== undefined && { to }) });
    }
  }

  #remember(seconds: number): void {
    this.affinitySeconds = Math.max(this.affinitySeconds, seconds);
    this.note(`# a client seen within ${seconds} s goes where it went before`);
  }

  #notUnderstood({ name }: SavedTable, line: string, what: string): RuleNotUnderstoodError {
    return new RuleNotUnderstoodError(what, [...this.evidence, `-t ${name} ${line}`]);
  }

  #confusion(what: string, { name }: SavedTable, chain: string): RuleNotUnderstoodError {
    return new RuleNotUnderstoodError(what, [...this.evidence.slice(0, maxDepth), `-t ${name} -A ${chain}`]);
  }
}

interface Visit {
  readonly table: SavedTable;
  readonly packet: RulePacket;
  readonly ends: TableEnd[];
}

/** Where packets go on that a rule did not end. */
interface Place {
  readonly here: Marked;
  readonly leaving: Marked;
  readonly depth: number;
}

function add(marked: Marked, mark: number, probability: number): void {
  marked.set(mark, (marked.get(mark) ?? 0) + probability);
}

function merge(into: Marked, from: Marked): void {
  for (const [mark, probability] of from) add(into, mark, probability);
}

/** The mark after a MARK target; undefined when its options are none that are known. */
function markedBy({ options }: RuleTarget, mark: number): number | undefined {
  const [option, ...others] = options;
  const parsed = option && others.length === 0 ? parseMark(option.values[0] ?? '') : undefined;
  if (!option || !parsed) return undefined;
  const { value, mask } = parsed;
  switch (option.name) {
    case '--set-xmark':
      return ((mark & ~mask) ^ value) >>> 0;
    case '--set-mark':
      return ((mark & ~mask) | value) >>> 0;
    case '--or-mark':
      return (mark | value) >>> 0;
    case '--xor-mark':
      return (mark ^ value) >>> 0;
    case '--and-mark':
      return (mark & value) >>> 0;
    default:
      return undefined;
  }
}
