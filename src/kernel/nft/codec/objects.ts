import { AttributeMap } from '../../netlink/attribute-map.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../../netlink/reader.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import { nameOf } from '../../numbers.ts';
import {
  familyNumbers,
  hookNumbers,
  NFT_OBJECT_COUNTER,
  NFT_TABLE_F_OWNER,
  NFTA_CHAIN,
  NFTA_COUNTER,
  NFTA_HOOK,
  NFTA_OBJ,
  NFTA_RULE,
  NFTA_TABLE,
} from '../constants.ts';
import type {
  BaseChain,
  Chain,
  ChainRef,
  Counter,
  ListedRule,
  Rule,
  RuleRef,
  RuleTarget,
  Table,
  TableRef,
} from '../objects.ts';
import { checkComment, readUserdataText } from '../userdata.ts';
import { readExprs, writeExprs } from './expr.ts';

/** Writing and reading of tables, chains, rules and counters. */

const commentRecord = 0;
const maxNameBytes = 255;
const policies = { drop: 0, accept: 1 } as const;

/** Returns the name. Throws RangeError for a name that the kernel does not accept. */
export function checkName(kind: string, name: string): string {
  const bytes = Buffer.byteLength(name);
  if (bytes === 0 || bytes > maxNameBytes || name.includes('\0')) {
    throw new RangeError(`${kind} name ${JSON.stringify(name)} is empty, longer than 255 bytes or has a NUL`);
  }
  return name;
}

export function writeComment(writer: MessageWriter, type: number, comment: string | undefined): void {
  if (!comment) return;
  const bytes = checkComment(comment);
  writer.string(type, comment, Uint8Array.of(commentRecord, bytes + 1));
}

export function writeTableRef(writer: MessageWriter, table: TableRef): void {
  writer.string(NFTA_TABLE.NAME, checkName('table', table.name));
}

export function writeTable(writer: MessageWriter, table: Table): void {
  writeTableRef(writer, table);
  writer.u32Be(NFTA_TABLE.FLAGS, table.isOwned ? NFT_TABLE_F_OWNER : 0);
  writeComment(writer, NFTA_TABLE.USERDATA, table.comment);
}

export function readTable(message: NetlinkMessage): Table {
  const a = AttributeMap.of(message);
  return {
    ...readTableRef(message, a.string(NFTA_TABLE.NAME)),
    ...(((a.u32Be(NFTA_TABLE.FLAGS) ?? 0) & NFT_TABLE_F_OWNER) !== 0 && { isOwned: true }),
    ...readComment(a, NFTA_TABLE.USERDATA),
  };
}

export function writeChainRef(writer: MessageWriter, chain: ChainRef): void {
  writer.string(NFTA_CHAIN.TABLE, checkName('table', chain.table.name));
  writer.string(NFTA_CHAIN.NAME, checkName('chain', chain.name));
}

export function writeChain(writer: MessageWriter, chain: Chain): void {
  writeChainRef(writer, chain);
  writeComment(writer, NFTA_CHAIN.USERDATA, chain.comment);
  const base = chain.base;
  if (!base) return;
  writer.string(NFTA_CHAIN.TYPE, base.type);
  if (base.policy) writer.u32Be(NFTA_CHAIN.POLICY, policies[base.policy]);
  const hook = writer.beginNested(NFTA_CHAIN.HOOK);
  writer.u32Be(NFTA_HOOK.HOOKNUM, hookNumbers[base.hook]);
  writer.u32Be(NFTA_HOOK.PRIORITY, base.priority >>> 0);
  writer.endNested(hook);
}

export function readChain(message: NetlinkMessage): Chain {
  const a = AttributeMap.of(message);
  const base = readBase(a);
  return {
    table: readTableRef(message, a.string(NFTA_CHAIN.TABLE)),
    name: required(a.string(NFTA_CHAIN.NAME), 'chain', 'a name'),
    ...(base && { base }),
    ...readComment(a, NFTA_CHAIN.USERDATA),
  };
}

/** Undefined for regular chains, and for hooks of device families, which BaseChain cannot express. */
function readBase(a: AttributeMap): BaseChain | undefined {
  const attributes = a.nestedMap(NFTA_CHAIN.HOOK);
  const hook = nameOf(hookNumbers, attributes?.u32Be(NFTA_HOOK.HOOKNUM));
  const priority = attributes?.i32Be(NFTA_HOOK.PRIORITY);
  const type = a.string(NFTA_CHAIN.TYPE);
  if (!hook || priority === undefined) return undefined;
  if (type !== 'filter' && type !== 'nat' && type !== 'route') return undefined;
  const policy = nameOf(policies, a.u32Be(NFTA_CHAIN.POLICY));
  return { type, hook, priority, ...(policy && { policy }) };
}

export function writeRuleChain(writer: MessageWriter, chain: ChainRef): void {
  writer.string(NFTA_RULE.TABLE, checkName('table', chain.table.name));
  writer.string(NFTA_RULE.CHAIN, checkName('chain', chain.name));
}

export function writeRuleRef(writer: MessageWriter, { chain, handle }: RuleRef): void {
  writeRuleChain(writer, chain);
  writer.u64Be(NFTA_RULE.HANDLE, handle);
}

export function writeRule(writer: MessageWriter, rule: Rule): void {
  writeRuleChain(writer, rule.chain);
  writeExprs(writer, NFTA_RULE.EXPRESSIONS, rule.exprs);
  writeComment(writer, NFTA_RULE.USERDATA, rule.comment);
}

export function readRuleTarget(message: NetlinkMessage): RuleTarget {
  const a = AttributeMap.of(message);
  let to: string | undefined;
  for (const expr of readExprs(a.nested(NFTA_RULE.EXPRESSIONS))) {
    if (expr.kind === 'verdict' && 'chain' in expr.verdict) to = expr.verdict.chain;
  }
  const handle = a.u64Be(NFTA_RULE.HANDLE);
  if (handle === undefined) throw new NetlinkFormatError('rule without a handle');
  return { chain: readRuleChain(message, a), handle, to };
}

export function readRule(message: NetlinkMessage): Rule {
  const a = AttributeMap.of(message);
  return {
    chain: readRuleChain(message, a),
    exprs: readExprs(a.nested(NFTA_RULE.EXPRESSIONS)),
    ...readComment(a, NFTA_RULE.USERDATA),
  };
}

function readRuleChain(message: NetlinkMessage, a: AttributeMap): ChainRef {
  return {
    table: readTableRef(message, a.string(NFTA_RULE.TABLE)),
    name: required(a.string(NFTA_RULE.CHAIN), 'rule', 'a chain'),
  };
}

export function readListedRule(message: NetlinkMessage): ListedRule {
  return { ...readRule(message), handle: AttributeMap.of(message).u64Be(NFTA_RULE.HANDLE) ?? 0n };
}

export function writeCounterObject(writer: MessageWriter, counter: Counter): void {
  writer.string(NFTA_OBJ.TABLE, checkName('table', counter.table.name));
  writer.string(NFTA_OBJ.NAME, checkName('counter', counter.name));
  writer.u32Be(NFTA_OBJ.TYPE, NFT_OBJECT_COUNTER);
  writeComment(writer, NFTA_OBJ.USERDATA, counter.comment);
  const data = writer.beginNested(NFTA_OBJ.DATA);
  writer.u64Be(NFTA_COUNTER.BYTES, counter.bytes ?? 0n);
  writer.u64Be(NFTA_COUNTER.PACKETS, counter.packets ?? 0n);
  writer.endNested(data);
}

/** Reads a counter; undefined for named objects of other types. */
export function readCounterObject(message: NetlinkMessage): Counter | undefined {
  const a = AttributeMap.of(message);
  if (a.u32Be(NFTA_OBJ.TYPE) !== NFT_OBJECT_COUNTER) return undefined;
  const values = a.nestedMap(NFTA_OBJ.DATA);
  return {
    table: readTableRef(message, a.string(NFTA_OBJ.TABLE)),
    name: required(a.string(NFTA_OBJ.NAME), 'counter', 'a name'),
    packets: values?.u64Be(NFTA_COUNTER.PACKETS) ?? 0n,
    bytes: values?.u64Be(NFTA_COUNTER.BYTES) ?? 0n,
    ...readComment(a, NFTA_OBJ.USERDATA),
  };
}

/** The table that a message refers to: its family is in the header, its name in an attribute. */
export function readTableRef(message: NetlinkMessage, name: string | undefined): TableRef {
  const number = message.firstByte;
  const family = nameOf(familyNumbers, number);
  if (!family) throw new NetlinkFormatError(`unknown table family ${number}`);
  return { family, name: required(name, 'object', 'a table') };
}

/** Returns the text. Throws NetlinkFormatError when it is missing. */
export function required(text: string | undefined, kind: string, what: string): string {
  if (text === undefined) throw new NetlinkFormatError(`${kind} without ${what}`);
  return text;
}

function readComment(a: AttributeMap, type: number): { comment?: string } {
  const userdata = a.bytes(type);
  const comment = userdata && readUserdataText(userdata, commentRecord);
  return comment === undefined ? {} : { comment };
}
