import { describeRule, describeVerdict } from '../describe-rule.ts';
import type { DynsetExpr, Expr, LookupExpr, NatExpr, NumgenExpr, Verdict } from '../expr.ts';
import type { Element, Rule } from '../objects.ts';
import { evaluate, type IsLocal } from './expressions.ts';
import type { PacketState } from './packet-state.ts';

/** What chains stand on: the rest of their table, and the node's addresses. */
export interface Surroundings {
  rulesOf(chain: string): readonly Rule[];
  /** Bytes of a key of the set. */
  keyLengthOf(set: string): number;
  /** The element that this key finds. */
  find(set: string, key: Uint8Array): Promise<Element | undefined>;
  readonly isLocal: IsLocal;
}

/** `next`: goes on behind the rule, or behind the chain. */
export type Course = 'next' | 'return' | 'accept' | 'drop' | 'reject';

/** A packet and where it stands. */
export interface Arrival {
  readonly state: PacketState;
  readonly course: Course;
}

/** A rule that a packet comes to does something that is not known here: where it leads cannot be told. */
export class NotUnderstoodError extends Error {
  constructor(rule: Rule) {
    super(`chain ${rule.chain.name} has a rule that is not understood: ${describeRule(rule)}`);
    this.name = 'NotUnderstoodError';
  }
}

/** The kernel's own limit of chains within chains. */
const maxDepth = 16;
/** Random numbers that are followed before a walk is given up: more than any set of endpoints needs. */
const maxDraws = 1 << 20;

/**
 * Runs packets through chains as the kernel does. Draws of random numbers are followed with every number. Rejects with
 * a NotUnderstoodError at a rule that does something which this program's own do not.
 */
export class ChainWalk {
  readonly #around: Surroundings;
  #draws = 0;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** Where the packet may get to. `next` when nothing in the chain decided about it. */
  async through(state: PacketState, chain: string, depth = 0): Promise<Arrival[]> {
    if (depth > maxDepth) return [{ state, course: 'drop' }];
    let walking = [state];
    const arrived: Arrival[] = [];
    for (const rule of this.#around.rulesOf(chain)) {
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

  /** From the given expression of a rule on. */
  async #rule(state: PacketState, rule: Rule, from: number, depth: number): Promise<Arrival[]> {
    for (let at = from; at < rule.exprs.length; at++) {
      const expr = rule.exprs[at];
      if (!expr) break;
      if (expr.kind === 'numgen') return this.#draw(state, rule, at, expr, depth);
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
    { modulus, offset = 0, dreg }: NumgenExpr,
    depth: number,
  ): Promise<Arrival[]> {
    this.#draws += modulus;
    if (this.#draws > maxDraws) throw new NotUnderstoodError(rule);
    const arrivals: Arrival[] = [];
    for (let number = 0; number < modulus; number++) {
      const one = state.fork(1 / modulus);
      one.writeWord(dreg, offset + number);
      for (const arrival of await this.#rule(one, rule, at + 1, depth)) arrivals.push(arrival);
    }
    return arrivals;
  }

  /** `on`: with the next expression; `end`: with the next rule; otherwise what was decided. */
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
      case 'unknown':
        throw new NotUnderstoodError(rule);
      default: {
        const { mark } = state;
        const goesOn = evaluate(expr, state, this.#around.isLocal);
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
    const key = state.read(sreg, this.#around.keyLengthOf(set));
    const element = await this.#around.find(set, key);
    if (element) state.note({ kind: 'element', set, element });
    else if (inverse || rule.exprs.some(({ kind }) => kind === 'numgen')) {
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

  /** Goes where a verdict leads. */
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
        // Who went there does not come back: what nothing decided about has left this chain as well.
        return arrivals.map((one) => (one.course === 'next' ? { ...one, course: 'return' } : one));
      }
    }
  }
}

/** Nothing is written: what counts is that the packet would be, and for how long. */
function remember(state: PacketState, { op, set, timeoutMs }: DynsetExpr, chain: string): void {
  if (op === 'delete') return;
  state.rememberedMs = timeoutMs ?? 0;
  const time = timeoutMs === undefined ? '' : ` timeout ${timeoutMs / 1000}s`;
  state.note({ kind: 'statement', chain, text: `${op} @${set}${time}` });
}
