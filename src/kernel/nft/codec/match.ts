import type { AttributeMap } from '../../netlink/attribute-map.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import { nameOf } from '../../numbers.ts';
import { bitsOf, namesOf } from '../constants.ts';
import type {
  BitwiseExpr,
  ByteorderExpr,
  CmpExpr,
  CtExpr,
  Expr,
  FibExpr,
  LookupExpr,
  MetaExpr,
  MetaSetExpr,
  NumgenExpr,
  PayloadExpr,
  RangeExpr,
} from '../expr.ts';
import { readValue, registerWord, writeRegister, writeValue } from './data.ts';

/**
 * Expressions that load, change and compare registers: each writer puts the attributes that nft puts, in its order;
 * each reader returns undefined for a variant that the node cannot express.
 */

const payloadBases = { link: 0, network: 1, transport: 2 } as const;
const metaKeys = {
  protocol: 1,
  priority: 2,
  mark: 3,
  iif: 4,
  oif: 5,
  iifname: 6,
  oifname: 7,
  nftrace: 12,
  nfproto: 15,
  l4proto: 16,
} as const;
const ctKeys = { state: 0, direction: 1, status: 2, mark: 3, l3protocol: 7, protocol: 10 } as const;
const cmpOps = { eq: 0, neq: 1, lt: 2, lte: 3, gt: 4, gte: 5 } as const;
const rangeOps = { eq: 0, neq: 1 } as const;
const byteorderOps = { ntoh: 0, hton: 1 } as const;
const fibResults = { oif: 1, oifname: 2, type: 3 } as const;
const fibFlags = { saddr: 1, daddr: 2, mark: 4, iif: 8, oif: 16, present: 32 } as const;
const numgenTypes = { inc: 0, random: 1 } as const;
const BITWISE_BOOL = 0;
const LOOKUP_INVERSE = 1;

const PAYLOAD = { DREG: 1, BASE: 2, OFFSET: 3, LEN: 4, SREG: 5 } as const;
const META = { DREG: 1, KEY: 2, SREG: 3 } as const;
const CT = { DREG: 1, KEY: 2, DIRECTION: 3, SREG: 4 } as const;
const CMP = { SREG: 1, OP: 2, DATA: 3 } as const;
const RANGE = { SREG: 1, OP: 2, FROM: 3, TO: 4 } as const;
const BITWISE = { SREG: 1, DREG: 2, LEN: 3, MASK: 4, XOR: 5, OP: 6 } as const;
const BYTEORDER = { SREG: 1, DREG: 2, OP: 3, LEN: 4, SIZE: 5 } as const;
const LOOKUP = { SET: 1, SREG: 2, DREG: 3, SET_ID: 4, FLAGS: 5 } as const;
const FIB = { DREG: 1, RESULT: 2, FLAGS: 3 } as const;
const NUMGEN = { DREG: 1, MODULUS: 2, TYPE: 3, OFFSET: 4 } as const;

export function writePayload(writer: MessageWriter, expr: PayloadExpr): void {
  writeRegister(writer, PAYLOAD.DREG, expr.dreg);
  writer.u32Be(PAYLOAD.BASE, payloadBases[expr.base]);
  writer.u32Be(PAYLOAD.OFFSET, expr.offset);
  writer.u32Be(PAYLOAD.LEN, expr.length);
}

export function readPayload(a: AttributeMap): Expr | undefined {
  const dreg = registerWord(a.u32Be(PAYLOAD.DREG));
  const base = nameOf(payloadBases, a.u32Be(PAYLOAD.BASE));
  const offset = a.u32Be(PAYLOAD.OFFSET);
  const length = a.u32Be(PAYLOAD.LEN);
  if (dreg === undefined || !base || offset === undefined || length === undefined) return undefined;
  return { kind: 'payload', base, offset, length, dreg };
}

export function writeMeta(writer: MessageWriter, expr: MetaExpr | MetaSetExpr): void {
  writer.u32Be(META.KEY, metaKeys[expr.key]);
  if (expr.kind === 'meta') writeRegister(writer, META.DREG, expr.dreg);
  else writeRegister(writer, META.SREG, expr.sreg);
}

export function readMeta(a: AttributeMap): Expr | undefined {
  const key = nameOf(metaKeys, a.u32Be(META.KEY));
  const dreg = registerWord(a.u32Be(META.DREG));
  const sreg = registerWord(a.u32Be(META.SREG));
  if (key && key !== 'nftrace' && dreg !== undefined) return { kind: 'meta', key, dreg };
  const settable = key === 'mark' || key === 'priority' || key === 'nftrace';
  return settable && sreg !== undefined ? { kind: 'meta-set', key, sreg } : undefined;
}

export function writeCt(writer: MessageWriter, expr: CtExpr): void {
  writer.u32Be(CT.KEY, ctKeys[expr.key]);
  writeRegister(writer, CT.DREG, expr.dreg);
}

export function readCt(a: AttributeMap): Expr | undefined {
  const key = nameOf(ctKeys, a.u32Be(CT.KEY));
  const dreg = registerWord(a.u32Be(CT.DREG));
  if (!key || dreg === undefined || a.has(CT.DIRECTION)) return undefined;
  return { kind: 'ct', key, dreg };
}

export function writeCmp(writer: MessageWriter, expr: CmpExpr): void {
  writeRegister(writer, CMP.SREG, expr.sreg);
  writer.u32Be(CMP.OP, cmpOps[expr.op]);
  writeValue(writer, CMP.DATA, expr.value);
}

export function readCmp(a: AttributeMap): Expr | undefined {
  const sreg = registerWord(a.u32Be(CMP.SREG));
  const op = nameOf(cmpOps, a.u32Be(CMP.OP));
  const value = readValue(a.nested(CMP.DATA));
  return sreg === undefined || !op || !value ? undefined : { kind: 'cmp', op, sreg, value };
}

export function writeRange(writer: MessageWriter, expr: RangeExpr): void {
  writeRegister(writer, RANGE.SREG, expr.sreg);
  writer.u32Be(RANGE.OP, rangeOps[expr.op]);
  writeValue(writer, RANGE.FROM, expr.from);
  writeValue(writer, RANGE.TO, expr.to);
}

export function readRange(a: AttributeMap): Expr | undefined {
  const sreg = registerWord(a.u32Be(RANGE.SREG));
  const op = nameOf(rangeOps, a.u32Be(RANGE.OP));
  const from = readValue(a.nested(RANGE.FROM));
  const to = readValue(a.nested(RANGE.TO));
  return sreg === undefined || !op || !from || !to ? undefined : { kind: 'range', op, sreg, from, to };
}

export function writeBitwise(writer: MessageWriter, expr: BitwiseExpr): void {
  if (expr.mask.length !== expr.xor.length) {
    throw new RangeError(`bitwise mask has ${expr.mask.length} bytes and xor ${expr.xor.length}`);
  }
  writeRegister(writer, BITWISE.SREG, expr.sreg);
  writeRegister(writer, BITWISE.DREG, expr.dreg);
  writer.u32Be(BITWISE.OP, BITWISE_BOOL);
  writer.u32Be(BITWISE.LEN, expr.mask.length);
  writeValue(writer, BITWISE.MASK, expr.mask);
  writeValue(writer, BITWISE.XOR, expr.xor);
}

export function readBitwise(a: AttributeMap): Expr | undefined {
  const sreg = registerWord(a.u32Be(BITWISE.SREG));
  const dreg = registerWord(a.u32Be(BITWISE.DREG));
  const mask = readValue(a.nested(BITWISE.MASK));
  const xor = readValue(a.nested(BITWISE.XOR));
  const bool = (a.u32Be(BITWISE.OP) ?? BITWISE_BOOL) === BITWISE_BOOL;
  if (!bool || sreg === undefined || dreg === undefined || !mask || !xor) return undefined;
  return { kind: 'bitwise', sreg, dreg, mask, xor };
}

export function writeByteorder(writer: MessageWriter, expr: ByteorderExpr): void {
  writeRegister(writer, BYTEORDER.SREG, expr.sreg);
  writeRegister(writer, BYTEORDER.DREG, expr.dreg);
  writer.u32Be(BYTEORDER.OP, byteorderOps[expr.op]);
  writer.u32Be(BYTEORDER.LEN, expr.length);
  writer.u32Be(BYTEORDER.SIZE, expr.size);
}

export function readByteorder(a: AttributeMap): Expr | undefined {
  const sreg = registerWord(a.u32Be(BYTEORDER.SREG));
  const dreg = registerWord(a.u32Be(BYTEORDER.DREG));
  const op = nameOf(byteorderOps, a.u32Be(BYTEORDER.OP));
  const length = a.u32Be(BYTEORDER.LEN);
  const size = a.u32Be(BYTEORDER.SIZE);
  if (sreg === undefined || dreg === undefined || !op || length === undefined || !size) return undefined;
  return { kind: 'byteorder', op, sreg, dreg, length, size };
}

export function writeLookup(writer: MessageWriter, expr: LookupExpr): void {
  writeRegister(writer, LOOKUP.SREG, expr.sreg);
  if (expr.dreg === 'verdict') writer.u32Be(LOOKUP.DREG, 0);
  else writeRegister(writer, LOOKUP.DREG, expr.dreg);
  writer.string(LOOKUP.SET, expr.set);
  if (expr.setId !== undefined) writer.u32Be(LOOKUP.SET_ID, expr.setId);
  if (expr.inverse) writer.u32Be(LOOKUP.FLAGS, LOOKUP_INVERSE);
}

export function readLookup(a: AttributeMap): Expr | undefined {
  const sreg = registerWord(a.u32Be(LOOKUP.SREG));
  const set = a.string(LOOKUP.SET);
  if (sreg === undefined || set === undefined) return undefined;
  const target = a.u32Be(LOOKUP.DREG);
  const dreg = target === 0 ? 'verdict' : registerWord(target);
  const setId = a.u32Be(LOOKUP.SET_ID);
  const inverse = ((a.u32Be(LOOKUP.FLAGS) ?? 0) & LOOKUP_INVERSE) !== 0;
  return {
    kind: 'lookup',
    set,
    sreg,
    ...(dreg !== undefined && { dreg }),
    ...(setId !== undefined && { setId }),
    ...(inverse && { inverse }),
  };
}

export function writeFib(writer: MessageWriter, expr: FibExpr): void {
  writer.u32Be(FIB.FLAGS, bitsOf(fibFlags, expr.flags));
  writer.u32Be(FIB.RESULT, fibResults[expr.result]);
  writeRegister(writer, FIB.DREG, expr.dreg);
}

export function readFib(a: AttributeMap): Expr | undefined {
  const dreg = registerWord(a.u32Be(FIB.DREG));
  const result = nameOf(fibResults, a.u32Be(FIB.RESULT));
  const flags = a.u32Be(FIB.FLAGS);
  if (dreg === undefined || !result || flags === undefined) return undefined;
  return { kind: 'fib', flags: namesOf(fibFlags, flags), result, dreg };
}

export function writeNumgen(writer: MessageWriter, expr: NumgenExpr): void {
  writeRegister(writer, NUMGEN.DREG, expr.dreg);
  writer.u32Be(NUMGEN.MODULUS, expr.modulus);
  writer.u32Be(NUMGEN.TYPE, numgenTypes[expr.type]);
  writer.u32Be(NUMGEN.OFFSET, expr.offset ?? 0);
}

export function readNumgen(a: AttributeMap): Expr | undefined {
  const dreg = registerWord(a.u32Be(NUMGEN.DREG));
  const modulus = a.u32Be(NUMGEN.MODULUS);
  const type = nameOf(numgenTypes, a.u32Be(NUMGEN.TYPE));
  const offset = a.u32Be(NUMGEN.OFFSET) ?? 0;
  if (dreg === undefined || modulus === undefined || !type) return undefined;
  return { kind: 'numgen', type, modulus, ...(offset !== 0 && { offset }), dreg };
}
