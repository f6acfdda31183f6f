import type { AttributeMap } from '../../netlink/attribute-map.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import { nameOf } from '../../numbers.ts';
import { bitsOf, familyNumbers, NFT_OBJECT_COUNTER, NFTA_COUNTER, namesOf } from '../constants.ts';
import type {
  CounterExpr,
  DynsetExpr,
  Expr,
  ImmediateExpr,
  MasqExpr,
  NatExpr,
  ObjrefExpr,
  Register,
  RejectExpr,
  VerdictExpr,
} from '../expr.ts';
import { readValue, readVerdict, registerWord, writeRegister, writeValue, writeVerdict } from './data.ts';

/** Expressions that do something with the packet, in the manner of match.ts. */

const natTypes = { snat: 0, dnat: 1 } as const;
const natFlags = { random: 4, persistent: 8, 'fully-random': 16 } as const;
const rejectTypes = { 'icmp-unreach': 0, 'tcp-reset': 1, 'icmpx-unreach': 2 } as const;
const dynsetOps = { add: 0, update: 1, delete: 2 } as const;

const IMMEDIATE = { DREG: 1, DATA: 2 } as const;
const NAT = { TYPE: 1, FAMILY: 2, ADDR_MIN: 3, ADDR_MAX: 4, PORT_MIN: 5, PORT_MAX: 6, FLAGS: 7 } as const;
const MASQ = { FLAGS: 1, PORT_MIN: 2, PORT_MAX: 3 } as const;
const REJECT = { TYPE: 1, CODE: 2 } as const;
const OBJREF = { TYPE: 1, NAME: 2 } as const;
const DYNSET = { SET: 1, SET_ID: 2, OP: 3, KEY: 4, DATA: 5, TIMEOUT: 6, EXPR: 7, EXPRESSIONS: 10 } as const;

const encoder = new TextEncoder();

export function writeImmediate(writer: MessageWriter, expr: ImmediateExpr): void {
  writeRegister(writer, IMMEDIATE.DREG, expr.dreg);
  writeValue(writer, IMMEDIATE.DATA, expr.value);
}

/** A verdict is an immediate value for register 0. */
export function writeVerdictExpr(writer: MessageWriter, expr: VerdictExpr): void {
  writer.u32Be(IMMEDIATE.DREG, 0);
  writeVerdict(writer, IMMEDIATE.DATA, expr.verdict);
}

export function readImmediate(a: AttributeMap): Expr | undefined {
  const number = a.u32Be(IMMEDIATE.DREG);
  if (number === 0) {
    const verdict = readVerdict(a.nested(IMMEDIATE.DATA));
    return verdict && { kind: 'verdict', verdict };
  }
  const dreg = registerWord(number);
  const value = readValue(a.nested(IMMEDIATE.DATA));
  return dreg === undefined || !value ? undefined : { kind: 'immediate', dreg, value };
}

export function writeNat(writer: MessageWriter, expr: NatExpr): void {
  writer.u32Be(NAT.TYPE, natTypes[expr.type]);
  writer.u32Be(NAT.FAMILY, familyNumbers[expr.family]);
  writeRegister(writer, NAT.ADDR_MIN, expr.addr);
  writeRegister(writer, NAT.ADDR_MAX, expr.addrMax);
  writeRegister(writer, NAT.PORT_MIN, expr.port);
  writeRegister(writer, NAT.PORT_MAX, expr.portMax);
  const flags = bitsOf(natFlags, expr.flags);
  if (flags !== 0) writer.u32Be(NAT.FLAGS, flags);
}

export function readNat(a: AttributeMap): Expr | undefined {
  const type = nameOf(natTypes, a.u32Be(NAT.TYPE));
  const family = nameOf({ ip: familyNumbers.ip, ip6: familyNumbers.ip6 }, a.u32Be(NAT.FAMILY));
  if (!type || !family) return undefined;
  const flags = namesOf(natFlags, a.u32Be(NAT.FLAGS) ?? 0);
  return {
    kind: 'nat',
    type,
    family,
    ...range('addr', 'addrMax', a.u32Be(NAT.ADDR_MIN), a.u32Be(NAT.ADDR_MAX)),
    ...range('port', 'portMax', a.u32Be(NAT.PORT_MIN), a.u32Be(NAT.PORT_MAX)),
    ...(flags.length > 0 && { flags }),
  };
}

/** The kernel reports an upper end equal to the lower one where none was given. */
function range<A extends string, B extends string>(
  min: A,
  max: B,
  from: number | undefined,
  to: number | undefined,
): Partial<Record<A | B, Register>> {
  const low = registerWord(from);
  const high = to === from ? undefined : registerWord(to);
  const found: Partial<Record<string, Register>> = {};
  if (low !== undefined) found[min] = low;
  if (high !== undefined) found[max] = high;
  return found;
}

export function writeMasq(writer: MessageWriter, expr: MasqExpr): void {
  const flags = bitsOf(natFlags, expr.flags);
  if (flags !== 0) writer.u32Be(MASQ.FLAGS, flags);
}

export function readMasq(a: AttributeMap): Expr | undefined {
  if (a.has(MASQ.PORT_MIN) || a.has(MASQ.PORT_MAX)) return undefined;
  const flags = namesOf(natFlags, a.u32Be(MASQ.FLAGS) ?? 0);
  return { kind: 'masq', ...(flags.length > 0 && { flags }) };
}

export function writeReject(writer: MessageWriter, expr: RejectExpr): void {
  writer.u32Be(REJECT.TYPE, rejectTypes[expr.type]);
  writer.u8(REJECT.CODE, expr.code);
}

export function readReject(a: AttributeMap): Expr | undefined {
  const type = nameOf(rejectTypes, a.u32Be(REJECT.TYPE));
  return type && { kind: 'reject', type, code: a.u8(REJECT.CODE) ?? 0 };
}

export function writeCounter(writer: MessageWriter, expr: CounterExpr): void {
  if (expr.bytes === undefined && expr.packets === undefined) return;
  writer.u64Be(NFTA_COUNTER.BYTES, expr.bytes ?? 0n);
  writer.u64Be(NFTA_COUNTER.PACKETS, expr.packets ?? 0n);
}

export function readCounter(a: AttributeMap): Expr {
  const bytes = a.u64Be(NFTA_COUNTER.BYTES);
  const packets = a.u64Be(NFTA_COUNTER.PACKETS);
  return {
    kind: 'counter',
    ...(packets !== undefined && { packets }),
    ...(bytes !== undefined && { bytes }),
  };
}

export function writeObjref(writer: MessageWriter, expr: ObjrefExpr): void {
  writer.u32Be(OBJREF.TYPE, NFT_OBJECT_COUNTER);
  // Without a terminating NUL, as nft sends it.
  writer.data(OBJREF.NAME, encoder.encode(expr.name));
}

export function readObjref(a: AttributeMap): Expr | undefined {
  const name = a.string(OBJREF.NAME);
  if (a.u32Be(OBJREF.TYPE) !== NFT_OBJECT_COUNTER || name === undefined) return undefined;
  return { kind: 'objref', type: 'counter', name };
}

export function writeDynset(writer: MessageWriter, expr: DynsetExpr): void {
  writeRegister(writer, DYNSET.KEY, expr.key);
  writeRegister(writer, DYNSET.DATA, expr.data);
  writer.u32Be(DYNSET.OP, dynsetOps[expr.op]);
  if (expr.timeoutMs !== undefined) writer.u64Be(DYNSET.TIMEOUT, BigInt(expr.timeoutMs));
  writer.string(DYNSET.SET, expr.set);
  if (expr.setId !== undefined) writer.u32Be(DYNSET.SET_ID, expr.setId);
}

export function readDynset(a: AttributeMap): Expr | undefined {
  const key = registerWord(a.u32Be(DYNSET.KEY));
  const op = nameOf(dynsetOps, a.u32Be(DYNSET.OP));
  const set = a.string(DYNSET.SET);
  if (key === undefined || !op || set === undefined) return undefined;
  if (a.has(DYNSET.EXPR) || a.has(DYNSET.EXPRESSIONS)) return undefined;
  const data = registerWord(a.u32Be(DYNSET.DATA));
  const timeout = a.u64Be(DYNSET.TIMEOUT) ?? 0n;
  const setId = a.u32Be(DYNSET.SET_ID);
  return {
    kind: 'dynset',
    op,
    set,
    key,
    ...(setId !== undefined && { setId }),
    ...(data !== undefined && { data }),
    ...(timeout !== 0n && { timeoutMs: Number(timeout) }),
  };
}
