import { AttributeMap } from '../../netlink/attribute-map.ts';
import { AttributeReader } from '../../netlink/reader.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import { NFTA_EXPR, NFTA_LIST_ELEM } from '../constants.ts';
import type { Expr } from '../expr.ts';
import { codecs, type ExprCodec, type ExprOf } from './expr-codecs.ts';

/** Expression lists of rules: each expression is a name and nested attributes. */

/** Names of the kernel for kinds that it does not distinguish. */
const sharedNames: Readonly<Record<string, string>> = {
  verdict: 'immediate',
  'payload-set': 'payload',
  'meta-set': 'meta',
  'ct-original': 'ct',
  'ct-set': 'ct',
};

const readers = new Map<string, ExprCodec<Expr>['read'][]>();
for (const [kind, { read }] of Object.entries(codecs)) {
  const name = sharedNames[kind] ?? kind;
  readers.set(name, [...(readers.get(name) ?? []), read]);
}

export function writeExprs(writer: MessageWriter, type: number, exprs: readonly Expr[]): void {
  const list = writer.beginNested(type);
  for (const expr of exprs) {
    const element = writer.beginNested(NFTA_LIST_ELEM);
    writer.string(
      NFTA_EXPR.NAME,
      expr.kind === 'unknown' ? expr.name : (sharedNames[expr.kind] ?? expr.kind),
    );
    const data = writer.beginNested(NFTA_EXPR.DATA);
    if (expr.kind === 'unknown') writer.raw(expr.data);
    else writeExpr(writer, expr.kind, expr);
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
    exprs.push(readExpr(name, data) ?? { kind: 'unknown', name, data });
  }
  return exprs;
}

function readExpr(name: string, data: Uint8Array): Expr | undefined {
  const candidates = readers.get(name);
  if (!candidates) return undefined;
  const attributes = new AttributeMap(AttributeReader.over(data));
  for (const read of candidates) {
    const expr = read(attributes);
    if (expr) return expr;
  }
  return undefined;
}

function writeExpr<K extends keyof typeof codecs>(writer: MessageWriter, kind: K, expr: ExprOf<K>): void {
  codecs[kind].write(writer, expr);
}
