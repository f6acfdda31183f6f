import { MessageWriter } from '../netlink/writer.ts';
import { writeRegister } from './codec/data.ts';
import { NFTA_EXPR } from './constants.ts';
import type { Expr, Register } from './expr.ts';
import type { SetRef } from './objects.ts';

/** Expressions that count packets by the destination to which their connection was made. */

const NFTA_CT = { DREG: 1, KEY: 2, DIRECTION: 3 } as const;
const ctKeys = { port: 12, IPv4: 20, IPv6: 22 } as const;
const ORIGINAL = 0;
const NFTA_DYNSET = { NAME: 1, OP: 3, KEY: 4, EXPR: 7 } as const;
const DYNSET_ADD = 0;

/** `ct original ip daddr` (4 bytes), `ct original ip6 daddr` (16 bytes) or `ct original proto-dst` (2 bytes). */
export function originalDestination(what: keyof typeof ctKeys, dreg: Register): Expr {
  const writer = new MessageWriter();
  writer.u32Be(NFTA_CT.KEY, ctKeys[what]);
  writeRegister(writer, NFTA_CT.DREG, dreg);
  writer.u8(NFTA_CT.DIRECTION, ORIGINAL);
  return { kind: 'unknown', name: 'ct', data: writer.bytes().slice() };
}

/** `add @set { key counter }`: counts the packet in the element with this key, which is added when it is missing. */
export function countInSet({ name }: SetRef, key: Register): Expr {
  const writer = new MessageWriter();
  writer.string(NFTA_DYNSET.NAME, name);
  writer.u32Be(NFTA_DYNSET.OP, DYNSET_ADD);
  writeRegister(writer, NFTA_DYNSET.KEY, key);
  const counter = writer.beginNested(NFTA_DYNSET.EXPR);
  writer.string(NFTA_EXPR.NAME, 'counter');
  writer.endNested(writer.beginNested(NFTA_EXPR.DATA));
  writer.endNested(counter);
  return { kind: 'unknown', name: 'dynset', data: writer.bytes().slice() };
}
