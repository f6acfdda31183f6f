import type { Expr, LookupExpr, MetaSetExpr, UnknownExpr, Verdict } from '../expr.ts';
import type { Chain, ChainRef, Element, ListedRule, SetRef } from '../objects.ts';
import { type Answer, both, eitherOf, isKnown, PartialRegisters, unknownBytes } from './known-bits.ts';
import { evaluatePartly, type PartialFacts, type PartialState } from './partial-expressions.ts';
import { markAfter, matchesExtension, readExtension } from './xtables.ts';

/** The ruleset, as far as a walk needs it. */
export interface RulesetFacts extends PartialFacts {
  rulesOf(chain: ChainRef): Promise<readonly ListedRule[]>;
  /** Length of the set's keys in bytes; undefined when that cannot be found out. */
  keyLengthOf(set: SetRef): Promise<number | undefined>;
  /** The element that this key finds, which may be the one for all other keys. */
  find(set: SetRef, key: Uint8Array): Promise<Element | undefined>;
}

/** What a base chain may do with a packet. `unknown`: a statement that is not understood decides. */
export interface PossibleVerdict {
  readonly action: 'accept' | 'drop' | 'reject' | 'unknown';
  /** The chains that lead to the rule, the base chain first. */
  readonly chains: readonly string[];
  /** Undefined when it is the policy of the base chain. */
  readonly rule: ListedRule | undefined;
}

export interface PossibleVerdicts {
  /** Every verdict that is possible; one when everything on the way is understood. */
  readonly verdicts: readonly PossibleVerdict[];
  /** Rules of which it is not known whether they match. */
  readonly unclear: number;
}

/** The kernel's limit of nested chains. */
const maxDepth = 16;
/** A walk stops after this many rules, and reports that the rest was not evaluated. */
const maxRules = 50_000;

/** Statements, among those that are not understood, after which the rule always continues. */
const harmless: ReadonlySet<string> = new Set([
  'log',
  'notrack',
  'last',
  'dup',
  'meta',
  'ct',
  'rt',
  'flow_offload',
]);
/** Targets of iptables after which the rule continues. */
const harmlessTargets: ReadonlySet<string> = new Set([
  ...['LOG', 'NFLOG', 'ULOG', 'AUDIT', 'TRACE', 'CT', 'NOTRACK', 'CONNMARK', 'SECMARK', 'CONNSECMARK', 'SET'],
  ...[
    'TCPMSS',
    'TCPOPTSTRIP',
    'CHECKSUM',
    'CLASSIFY',
    'DSCP',
    'TOS',
    'ECN',
    'TTL',
    'HL',
    'TEE',
    'LED',
    'RATEEST',
  ],
]);
/** Targets that rewrite the packet and end the chain. */
const natTargets: ReadonlySet<string> = new Set([
  'DNAT',
  'SNAT',
  'MASQUERADE',
  'REDIRECT',
  'NETMAP',
  'TPROXY',
]);

/** What an expression does: the rule continues, perhaps, or decides. */
type Effect = { readonly match: Answer; readonly decision?: Verdict | 'reject' | 'unknown' };

const goesOn: Effect = { match: 'yes' };
const perhaps: Effect = { match: 'maybe' };

/** Chains that the caller has looked at already. */
export interface KnownChains {
  /** They do not stop the packet: only what they accept counts. */
  isHarmless(chain: string): boolean;
  /** They do nothing that counts here, and jumps to them are not followed. */
  isSkipped(chain: string): boolean;
}

const noneKnown: KnownChains = { isHarmless: () => false, isSkipped: () => false };

/**
 * Runs a packet through a base chain of another program's table and finds every verdict that is possible. A rule that
 * is not understood may match or not; both ways are followed. Changes the mark of the state as the rules do.
 */
export async function possibleVerdicts(
  base: Chain,
  state: PartialState,
  facts: RulesetFacts,
  known: KnownChains = noneKnown,
): Promise<PossibleVerdicts> {
  const walk = new PartialWalk(base, state, facts, known);
  return walk.run();
}

function stops(decision: Verdict | 'reject' | 'unknown'): boolean {
  return typeof decision === 'string' || decision.kind === 'drop';
}

class PartialWalk {
  readonly #base: Chain;
  readonly #state: PartialState;
  readonly #facts: RulesetFacts;
  readonly #known: KnownChains;
  readonly #verdicts: PossibleVerdict[] = [];
  #unclear = 0;
  #rules = 0;

  constructor(base: Chain, state: PartialState, facts: RulesetFacts, known: KnownChains) {
    this.#base = base;
    this.#state = state;
    this.#facts = facts;
    this.#known = known;
  }

  async run(): Promise<PossibleVerdicts> {
    if (await this.#returns([this.#base.name])) {
      const action = this.#base.base?.policy ?? 'accept';
      this.#verdicts.push({ action, chains: [this.#base.name], rule: undefined });
    }
    return { verdicts: this.#verdicts, unclear: this.#unclear };
  }

  /** Runs through the last of these chains; returns whether the packet may come out of it undecided. */
  async #returns(chains: readonly string[]): Promise<boolean> {
    const name = chains.at(-1) ?? '';
    if (chains.length > maxDepth) {
      this.#verdicts.push({ action: 'drop', chains, rule: undefined });
      return false;
    }
    let returns = false;
    for (const rule of await this.#facts.rulesOf({ table: this.#base.table, name })) {
      if (++this.#rules > maxRules) {
        this.#unclear++;
        this.#verdicts.push({ action: 'unknown', chains, rule });
        return true;
      }
      const { match, decision } = await this.#run(rule);
      if (match === 'no' || decision === undefined) continue;
      if (stops(decision) && this.#known.isHarmless(name)) continue;
      if (match === 'maybe') this.#unclear++;
      const after = await this.#decide(decision, chains, rule);
      returns ||= after === 'returns' || after === 'may return';
      const isDecided = after === 'ends' || after === 'returns' || after === 'may return';
      if (match === 'yes' && isDecided) return returns;
    }
    return true;
  }

  /** What a decision does with the packet, when its rule matches. `next`: the packet continues with the next rule. */
  async #decide(
    decision: Verdict | 'reject' | 'unknown',
    chains: readonly string[],
    rule: ListedRule,
  ): Promise<'next' | 'ends' | 'returns' | 'may return'> {
    if (decision === 'reject' || decision === 'unknown') {
      this.#verdicts.push({ action: decision, chains, rule });
      return decision === 'unknown' ? 'next' : 'ends';
    }
    switch (decision.kind) {
      case 'accept':
      case 'drop':
        this.#verdicts.push({ action: decision.kind, chains, rule });
        return 'ends';
      case 'continue':
        return 'next';
      case 'return':
        return 'returns';
      case 'jump':
      case 'goto': {
        if (this.#known.isSkipped(decision.chain)) return 'next';
        const returns = await this.#returns([...chains, decision.chain]);
        if (decision.kind === 'jump') return returns ? 'next' : 'ends';
        // A packet does not return from a goto: when nothing decided there, it has left this chain as well.
        return returns ? 'may return' : 'ends';
      }
    }
  }

  /** Runs the expressions of a rule up to its decision. */
  async #run(rule: ListedRule): Promise<Effect> {
    const registers = new PartialRegisters();
    let match: Answer = 'yes';
    for (const expr of rule.exprs) {
      const effect: Effect = await this.#step(expr, registers, match);
      match = both(match, effect.match);
      if (match === 'no') return { match };
      if (effect.decision !== undefined) return { match, decision: effect.decision };
    }
    return { match };
  }

  async #step(expr: Expr, registers: PartialRegisters, match: Answer): Promise<Effect> {
    switch (expr.kind) {
      case 'lookup':
        return this.#lookUp(expr, registers);
      case 'verdict':
        return { match: 'yes', decision: expr.verdict };
      case 'nat':
      case 'masq':
        return { match: 'yes', decision: { kind: 'accept' } };
      case 'reject':
        return { match: 'yes', decision: 'reject' };
      case 'meta-set':
        this.#setMark(expr, registers, match);
        return goesOn;
      case 'counter':
        return goesOn;
      case 'payload-set':
        // The rest of the chains may see another packet than the one that is followed.
        return perhaps;
      case 'ct-original':
        registers.write(expr.dreg, unknownBytes(expr.key === 'saddr6' ? 16 : 4));
        return goesOn;
      case 'ct-set':
        return goesOn;
      case 'objref':
      case 'flow_offload':
        return goesOn;
      case 'dynset':
      case 'limit':
        // A full set ends the rule, and so does a limit that is used up.
        return perhaps;
      case 'unknown':
        return this.#stepUnknown(expr, registers, match);
      default:
        return { match: await evaluatePartly(expr, registers, this.#state, this.#facts) };
    }
  }

  #setMark({ key, sreg }: MetaSetExpr, registers: PartialRegisters, match: Answer): void {
    if (key !== 'mark') return;
    this.#changeMark(registers.read(sreg, 4), match);
  }

  #changeMark(mark: PartialState['mark'], match: Answer): void {
    this.#state.mark = match === 'yes' ? mark : eitherOf(this.#state.mark, mark);
  }

  async #lookUp(
    { set, sreg, dreg, inverse = false }: LookupExpr,
    registers: PartialRegisters,
  ): Promise<Effect> {
    const ref = { table: this.#base.table, name: set };
    const length = await this.#facts.keyLengthOf(ref);
    const key = length === undefined ? undefined : registers.read(sreg, length);
    if (!key || !isKnown(key)) {
      if (typeof dreg === 'number') registers.forget();
      return dreg === 'verdict' ? { match: 'maybe', decision: 'unknown' } : perhaps;
    }
    const element = await this.#facts.find(ref, key.value);
    if (dreg === undefined) return { match: (element !== undefined) === inverse ? 'no' : 'yes' };
    if (!element) return { match: 'no' };
    if (dreg === 'verdict') return { match: 'yes', decision: element.verdict ?? 'unknown' };
    const { data } = element;
    registers.write(
      dreg,
      data ? { value: data, known: new Uint8Array(data.length).fill(0xff) } : unknownBytes(4),
    );
    return goesOn;
  }

  #stepUnknown(expr: UnknownExpr, registers: PartialRegisters, match: Answer): Effect {
    switch (expr.name) {
      case 'match':
        return {
          match: matchesExtension(readExtension(expr), { ...this.#state, isLocal: this.#facts.isLocal }),
        };
      case 'target':
        return this.#target(expr, match);
      case 'redir':
      case 'nat':
      case 'masq':
      case 'tproxy':
        return { match: 'yes', decision: { kind: 'accept' } };
      case 'queue':
      case 'synproxy':
      case 'immediate':
      case 'fwd':
        return { match: 'yes', decision: 'unknown' };
      default:
        // What it loads or whether it ends the rule is not known.
        registers.forget();
        return harmless.has(expr.name) ? goesOn : perhaps;
    }
  }

  #target(expr: UnknownExpr, match: Answer): Effect {
    const extension = readExtension(expr);
    const { name } = extension;
    if (name === 'REJECT') return { match: 'yes', decision: 'reject' };
    if (natTargets.has(name)) return { match: 'yes', decision: { kind: 'accept' } };
    if (name === 'MARK') {
      this.#changeMark(markAfter(extension, this.#state.mark) ?? unknownBytes(4), match);
      return goesOn;
    }
    return harmlessTargets.has(name) ? goesOn : { match: 'yes', decision: 'unknown' };
  }
}
