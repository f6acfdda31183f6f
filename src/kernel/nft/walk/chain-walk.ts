import { describeRule, describeVerdict } from '../describe-rule.ts';
import type { DynsetExpr, Expr, HashExpr, LookupExpr, NatExpr, NumgenExpr, Verdict } from '../expr.ts';
import type { Element, Rule } from '../objects.ts';
import { evaluate, type IsLocal } from './expressions.ts';
import type { PacketState } from './packet-state.ts';

/** The facts that a walk needs: the table's rules and sets, and the node's addresses. */
export interface TableFacts {
  rulesOf(chain: string): readonly Rule[];
  /** Length of the set's keys in bytes. */
  keyLengthOf(set: string): number;
  /** The element that this key finds. */
  find(set: string, key: Uint8Array): Promise<Element | undefined>;
  readonly isLocal: IsLocal;
}

/** `next`: continues after the rule or the chain. */
export type Course = 'next' | 'return' | 'accept' | 'drop' | 'reject';

/** A packet and the outcome of a rule or chain for it. */
export interface Arrival {
  readonly state: PacketState;
  readonly course: Course;
}

/** The packet met a rule that this program cannot evaluate, so its fate is unknown. */
export class NotUnderstoodError extends Error {
  constructor(rule: Rule) {
    super(`chain ${rule.chain.name} has a rule that is not understood: ${describeRule(rule)}`);
    this.name = 'NotUnderstoodError';
  }
}

/** The kernel's limit of nested chains. */
const maxDepth = 16;
/** A walk stops after this many random numbers: more than any set of endpoints needs. */
const maxDraws = 1 << 20;

/**
 * Runs packets through chains as the kernel does, and follows every outcome of a random number. Rejects with
 * NotUnderstoodError at a rule with an expression that this program does not write.
 */
export class ChainWalk {
  readonly #facts: TableFacts;
  #draws = 0;

  constructor(facts: TableFacts) {
    this.#facts = facts;
  }

  /** All outcomes of a chain for a packet. `next`: no rule of the chain decided. */
  async through(state: PacketState, chain: string, depth = 0): Promise<Arrival[]> {
    if (depth > maxDepth) return [{ state, course: 'drop' }];
    let walking = [state];
    const arrived: Arrival[] = [];
    for (const rule of this.#facts.rulesOf(chain)) {
      const still: PacketState[] = [];
      for (const one of walking) {
        for (const arrival of await this.#rule(one, rule, 0, depth)) {
          if (arrival.course === 'next') still.push(arrival.state);
          else arrived.push(arrival.course === 'return' ? { ...arrival, course: 'next' } : arrival);
        }
      }
      walking = still;
    }
    return [...arrived, ...walking.map((one): Arrival => ({ state: one, course: 'next' }))];
  }

  /** Runs a rule, beginning with the expression at index `from`. */
  async #rule(state: PacketState, rule: Rule, from: number, depth: number): Promise<Arrival[]> {
    for (let at = from; at < rule.exprs.length; at++) {
      const expr = rule.exprs[at];
      if (!expr) break;
      if (isSourcePort(expr) && isHashing(rule)) continue;
      if (isOpen(expr, rule)) return this.#draw(state, rule, at, expr, depth);
      const result = await this.#step(state, expr, rule);
      if (result === 'end') break;
      if (result !== 'on') return this.#follow(state, result, depth);
    }
    return [{ state, course: 'next' }];
  }

  async #draw(
    state: PacketState,
    rule: Rule,
    at: number,
    { modulus, offset = 0, dreg }: NumgenExpr | HashExpr,
    depth: number,
  ): Promise<Arrival[]> {
    this.#draws += modulus;
    if (this.#draws > maxDraws) throw new NotUnderstoodError(rule);
    const arrivals: Arrival[] = [];
    for (let number = 0; number < modulus; number++) {
      const one = state.fork(1 / modulus);
      one.writeWord(dreg, offset + number);
      one.recalledMs = undefined;
      for (const arrival of await this.#rule(one, rule, at + 1, depth)) arrivals.push(arrival);
    }
    return arrivals;
  }

  /** Runs one expression. Returns `on` (next expression), `end` (next rule), or the decision. */
  async #step(state: PacketState, expr: Expr, rule: Rule): Promise<'on' | 'end' | 'reject' | Verdict> {
    const chain = rule.chain.name;
    switch (expr.kind) {
      case 'lookup':
        return this.#lookUp(state, expr, rule);
      case 'verdict':
        if (expr.verdict.kind === 'drop' || expr.verdict.kind === 'goto') {
          state.note({ kind: 'statement', chain, text: describeVerdict(expr.verdict) });
        }
        return expr.verdict;
      case 'nat':
        return this.#rewrite(state, expr, chain);
      case 'masq':
        state.isMasqueraded = true;
        state.note({ kind: 'statement', chain, text: 'masquerade' });
        return { kind: 'accept' };
      case 'reject':
        state.note({ kind: 'statement', chain, text: 'reject' });
        return 'reject';
      case 'dynset':
        remember(state, expr, chain);
        return 'on';
      case 'numgen':
      case 'limit':
      case 'payload-set':
      case 'ct-original':
      case 'ct-set':
      case 'unknown':
        throw new NotUnderstoodError(rule);
      default: {
        const { mark } = state;
        const goesOn = evaluate(expr, state, this.#facts.isLocal);
        if (goesOn === undefined) throw new NotUnderstoodError(rule);
        if (state.mark !== mark) {
          const text = `meta mark set 0x${state.mark.toString(16).padStart(8, '0')}`;
          state.note({ kind: 'statement', chain, text });
        }
        return goesOn ? 'on' : 'end';
      }
    }
  }

  async #lookUp(state: PacketState, expr: LookupExpr, rule: Rule): Promise<'on' | 'end' | Verdict> {
    const { set, sreg, dreg, inverse = false } = expr;
    const key = state.read(sreg, this.#facts.keyLengthOf(set));
    const element = await this.#facts.find(set, key);
    if (element?.expiresMs !== undefined) state.recalledMs = element.expiresMs;
    if (element) state.note({ kind: 'element', set, element });
    else if (inverse || rule.exprs.some((one) => isOpen(one, rule))) {
      state.note({ kind: 'missing', set, key });
    }
    if (dreg === undefined) return (element !== undefined) === inverse ? 'end' : 'on';
    if (!element) return 'end';
    if (dreg === 'verdict') return element.verdict ?? 'end';
    state.write(dreg, element.data ?? new Uint8Array());
    return 'on';
  }

  #rewrite(state: PacketState, { type, addr, port }: NatExpr, chain: string): 'end' | Verdict {
    if (type === 'snat') state.isMasqueraded = true;
    else {
      const length = state.packet.destination.length;
      if (addr !== undefined) state.destination = state.read(addr, length);
      const [high = 0, low = 0] = port === undefined ? [] : state.read(port, 2);
      if (port !== undefined) state.port = (high << 8) | low;
      state.isRewritten = true;
    }
    state.note({ kind: 'statement', chain, text: type });
    return { kind: 'accept' };
  }

  /** Executes a verdict. */
  async #follow(state: PacketState, verdict: Verdict | 'reject', depth: number): Promise<Arrival[]> {
    if (verdict === 'reject') return [{ state, course: 'reject' }];
    switch (verdict.kind) {
      case 'accept':
      case 'drop':
      case 'return':
        return [{ state, course: verdict.kind }];
      case 'continue':
        return [{ state, course: 'next' }];
      case 'jump':
      case 'goto': {
        const arrivals = await this.through(state, verdict.chain, depth + 1);
        if (verdict.kind === 'jump') return arrivals;
        // A packet does not return from a goto: when nothing decided there, it has left this chain as well.
        return arrivals.map((one) => (one.course === 'next' ? { ...one, course: 'return' } : one));
      }
    }
  }
}

/** An expression that may give any number: a random one, or a hash of the source port, which no packet here has. */
function isOpen(expr: Expr, rule: Rule): expr is NumgenExpr | HashExpr {
  return expr.kind === 'numgen' || (expr.kind === 'hash' && rule.exprs.some(isSourcePort));
}

function isHashing({ exprs }: Rule): boolean {
  return exprs.some(({ kind }) => kind === 'hash');
}

function isSourcePort(expr: Expr): boolean {
  return expr.kind === 'payload' && expr.base === 'transport' && expr.offset === 0 && expr.length === 2;
}

/** Records that the packet's client would be remembered, and for how long; writes nothing to the set. */
function remember(state: PacketState, { op, set, timeoutMs }: DynsetExpr, chain: string): void {
  if (op === 'delete') return;
  state.rememberedMs = timeoutMs ?? 0;
  const time = timeoutMs === undefined ? '' : ` timeout ${timeoutMs / 1000}s`;
  state.note({ kind: 'statement', chain, text: `${op} @${set}${time}` });
}
