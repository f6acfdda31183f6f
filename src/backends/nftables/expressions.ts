import type { Expr, Register, Verdict } from '../../kernel/nft/expr.ts';
import { word } from '../../kernel/nft/fields.ts';
import type { EndpointList } from '../../plan/service-plan.ts';
import { hasBit, type RuleBody } from '../nft-fields.ts';
import { localSlotBase, type SetName } from './layout.ts';

export const dispatchTo = (set: SetName, sreg: Register): Expr => lookup(set, sreg, 'verdict');

export function lookup(set: SetName, sreg: Register, dreg?: Register | 'verdict'): Expr {
  return dreg === undefined ? { kind: 'lookup', set, sreg } : { kind: 'lookup', set, sreg, dreg };
}

export function verdict(kind: 'jump' | 'goto', chain: string): Expr;
export function verdict(kind: 'drop' | 'return'): Expr;
export function verdict(kind: Verdict['kind'], chain?: string): Expr {
  if (kind === 'jump' || kind === 'goto') return { kind: 'verdict', verdict: { kind, chain: chain ?? '' } };
  return { kind: 'verdict', verdict: { kind } };
}

export function hasMark(mark: number): RuleBody {
  return hasBit({ kind: 'meta', key: 'mark', dreg: 0 }, mark);
}

/** Sets or clears bits of the packet mark and leaves the others as they are. */
export function changeMark(mark: number, set: boolean): RuleBody {
  return [
    { kind: 'meta', key: 'mark', dreg: 0 },
    { kind: 'bitwise', sreg: 0, dreg: 0, mask: word(~mark >>> 0), xor: word(set ? mark : 0) },
    { kind: 'meta-set', key: 'mark', sreg: 0 },
  ];
}

export function loadPriority(dreg: Register): Expr {
  return { kind: 'meta', key: 'priority', dreg };
}

/** From register 0. */
export const setPriority: Expr = { kind: 'meta-set', key: 'priority', sreg: 0 };

export const clearPriority: RuleBody = [{ kind: 'immediate', dreg: 0, value: word(0) }, setPriority];

export const masquerade: Expr = { kind: 'masq', flags: ['fully-random'] };

/** A number below `count`, from the range that the list's slots have. */
export function drawSlot(list: EndpointList, count: number, dreg: Register): Expr {
  const draw: Expr = { kind: 'numgen', type: 'random', modulus: count, dreg };
  return list === 'cluster' ? draw : { ...draw, offset: localSlotBase };
}
