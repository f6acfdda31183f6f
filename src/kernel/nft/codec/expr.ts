import { AttributeMap } from '../../netlink/attribute-map.ts';
import { AttributeReader } from '../../netlink/reader.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import { NFTA_EXPR, NFTA_LIST_ELEM } from '../constants.ts';
import type { Expr } from '../expr.ts';
import * as action from './action.ts';
import * as match from './match.ts';

/** Expression lists of rules: each expression is a name and nested attributes. */

type Reader = (attributes: AttributeMap) => Expr | undefined;

const readers: ReadonlyMap<string, Reader> = new Map([
  ['payload', match.readPayload],
  ['meta', match.readMeta],
  ['ct', match.readCt],
  ['cmp', match.readCmp],
  ['range', match.readRange],
  ['bitwise', match.readBitwise],
  ['byteorder', match.readByteorder],
  ['lookup', match.readLookup],
  ['fib', match.readFib],
  ['numgen', match.readNumgen],
  ['immediate', action.readImmediate],
  ['nat', action.readNat],
  ['masq', action.readMasq],
  ['reject', action.readReject],
  ['counter', action.readCounter],
  ['objref', action.readObjref],
  ['dynset', action.readDynset],
]);

type ExprOf<K extends Expr['kind']> = Extract<Expr, { readonly kind: K }>;
type Writers = { readonly [K in Expr['kind']]: (writer: MessageWriter, expr: ExprOf<K>) => void };

const writers: Writers = {
  payload: match.writePayload,
  meta: match.writeMeta,
  'meta-set': match.writeMeta,
  ct: match.writeCt,
  cmp: match.writeCmp,
  range: match.writeRange,
  bitwise: match.writeBitwise,
  byteorder: match.writeByteorder,
  lookup: match.writeLookup,
  fib: match.writeFib,
  numgen: match.writeNumgen,
  immediate: action.writeImmediate,
  verdict: action.writeVerdictExpr,
  nat: action.writeNat,
  masq: action.writeMasq,
  reject: action.writeReject,
  counter: action.writeCounter,
  objref: action.writeObjref,
  dynset: action.writeDynset,
  unknown: (writer, expr) => writer.raw(expr.data),
};

export function writeExprs(writer: MessageWriter, type: number, exprs: readonly Expr[]): void {
  const list = writer.beginNested(type);
  for (const expr of exprs) {
    const element = writer.beginNested(NFTA_LIST_ELEM);
    writer.string(NFTA_EXPR.NAME, kernelName(expr));
    const data = writer.beginNested(NFTA_EXPR.DATA);
    writeExpr(writer, expr.kind, expr);
    writer.endNested(data);
    writer.endNested(element);
  }
  writer.endNested(list);
}

/** Reads expressions. One that this program does not write becomes `unknown`, with its attributes. */
export function readExprs(list: AttributeReader | undefined): Expr[] {
  const exprs: Expr[] = [];
  while (list?.next()) {
    const attributes = new AttributeMap(list.nested());
    const name = attributes.string(NFTA_EXPR.NAME) ?? '';
    const data = attributes.bytes(NFTA_EXPR.DATA) ?? new Uint8Array(0);
    const read = readers.get(name);
    exprs.push(read?.(new AttributeMap(AttributeReader.over(data))) ?? { kind: 'unknown', name, data });
  }
  return exprs;
}

function kernelName(expr: Expr): string {
  switch (expr.kind) {
    case 'verdict':
      return 'immediate';
    case 'meta-set':
      return 'meta';
    case 'unknown':
      return expr.name;
    default:
      return expr.kind;
  }
}

function writeExpr<K extends Expr['kind']>(writer: MessageWriter, kind: K, expr: ExprOf<K>): void {
  writers[kind](writer, expr);
}
