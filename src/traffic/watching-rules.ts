import type { Expr } from '../kernel/nft/expr.ts';
import { word } from '../kernel/nft/fields.ts';
import type { TableRef } from '../kernel/nft/objects.ts';
import type { Family } from '../model/ip.ts';

const LOOPBACK_INDEX = 1;

/** A table of this process that watches packets of one family. */
export function ownTable(family: Family, prefix: string): TableRef {
  return { family: family === 'IPv4' ? 'ip' : 'ip6', name: `${prefix}${process.pid}` };
}

/** Whether the packet came over loopback; with `neq`, whether it did not. Such packets pass the hooks on the way out, too. */
export function isFromLoopback(op: 'eq' | 'neq'): Expr[] {
  return [
    { kind: 'meta', key: 'iif', dreg: 0 },
    { kind: 'cmp', op, sreg: 0, value: word(LOOPBACK_INDEX) },
  ];
}
