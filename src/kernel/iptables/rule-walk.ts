import type { Clock } from '../../lib/clock.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import { optionOf, type Rule, type RuleTarget } from './rule.ts';
import {
  type Affinity,
  affinityOf,
  chanceOf,
  type MatchFacts,
  parseMark,
  RuleNotUnderstoodError,
  type RulePacket,
} from './rule-match.ts';
import type { SavedTable } from './saved-table.ts';

/** A way in which a packet leaves a table, and its probability. */
export interface TableEnd {
  readonly probability: number;
  readonly mark: number;
  /** `through`: no rule of ours decided. */
  readonly verdict: 'through' | 'accept' | 'drop' | 'reject' | 'masquerade' | 'rewrite';
  /** The new destination when it was rewritten: `10.0.0.1:80`. */
  readonly to?: string;
}

/** The probability that a packet is at some point, by the mark that it carries there. */
type Marked = Map<number, number>;

/** The kernel allows 16 nested chains in nf_tables, and more in legacy tables. */
const maxDepth = 64;
/** More rules than any packet meets; stops on tables with jump cycles, which the kernel does not accept. */
const maxRules = 2_000_000;

const verdicts: Readonly<Record<string, TableEnd['verdict']>> = {
  ACCEPT: 'accept',
  DROP: 'drop',
  REJECT: 'reject',
  MASQUERADE: 'masquerade',
  DNAT: 'rewrite',
};

/**
 * Runs one packet through tables as the kernel would, and follows both outcomes of a random match. In built-in chains it
 * follows only rules that jump to one of `entries`: rules of other software are not evaluated.
 */
export class RuleWalk {
  /** Rules that matched, in order, in the syntax of iptables; other lines are comments. */
  readonly evidence: string[] = [];
  /** Seconds for which the rules send a known client to the same endpoint; 0 without affinity. */
  affinitySeconds = 0;
  /** Seconds until the client is forgotten, when a rule has sent it to an endpoint that it used before. */
  secondsLeft: number | undefined;
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

  /** Runs a packet from a built-in chain on. The probabilities of the ends add up to 1. */
  async enter(table: SavedTable, chain: string, packet: RulePacket): Promise<TableEnd[]> {
    const ends: TableEnd[] = [];
    const through = await this.#walk({ table, packet, ends }, chain, new Map([[packet.mark, 1]]), 0);
    for (const [mark, probability] of through) ends.push({ probability, mark, verdict: 'through' });
    return ends;
  }

  /** Adds a line to the evidence once. */
  note(line: string): void {
    if (this.#seen.has(line)) return;
    this.#seen.add(line);
    this.evidence.push(line);
  }

  /** Returns the packets that reach the end of a chain or return from it. */
  async #walk(visit: Visit, chain: string, entering: Marked, depth: number): Promise<Marked> {
    if (depth > maxDepth) throw this.#tooDeep('a cycle of jumps', visit.table, chain);
    let here = entering;
    const leaving: Marked = new Map();
    for (const { rule, line } of visit.table.rules(chain)) {
      if (here.size === 0) break;
      if (depth === 0 && !this.#entries.has(rule.target?.name ?? '')) continue;
      if (++this.#rules > maxRules) throw this.#tooDeep('too many rules', visit.table, chain);
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
      const affinity = chance > 0 ? affinityOf(rule) : undefined;
      const likely = !affinity || this.#isKnown(affinity, visit.packet) ? chance : 0;
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
        if (marked === undefined) throw this.#notUnderstood(visit.table, line, '-j MARK with these options');
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
    if (verdict === 'rewrite' && to === undefined)
      throw this.#notUnderstood(table, line, 'DNAT without a destination');
    for (const [mark, probability] of matched) {
      ends.push({ probability, mark, verdict, ...(to !== undefined && { to }) });
    }
  }

  /** Whether the client was seen within the time of the affinity. */
  #isKnown({ seconds, list }: Affinity, { source }: RulePacket): boolean {
    this.affinitySeconds = Math.max(this.affinitySeconds, seconds);
    this.note(`# a client seen within ${seconds} s goes where it went before`);
    const since = this.#facts.secondsSinceSeen?.(list, source);
    if (since === undefined || since > seconds) return false;
    this.secondsLeft = seconds - since;
    this.note(`# list ${list} saw the client ${Math.round(since)} s ago`);
    return true;
  }

  #notUnderstood({ name }: SavedTable, line: string, what: string): RuleNotUnderstoodError {
    return new RuleNotUnderstoodError(what, [...this.evidence, `-t ${name} ${line}`]);
  }

  #tooDeep(what: string, { name }: SavedTable, chain: string): RuleNotUnderstoodError {
    return new RuleNotUnderstoodError(what, [...this.evidence.slice(0, maxDepth), `-t ${name} -A ${chain}`]);
  }
}

interface Visit {
  readonly table: SavedTable;
  readonly packet: RulePacket;
  readonly ends: TableEnd[];
}

/** Where packets continue after a rule. */
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

/** The mark after a MARK target; undefined for unknown options. */
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
