import { AttributeMap } from '../../netlink/attribute-map.ts';
import type { NetlinkMessage } from '../../netlink/reader.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import {
  bitsOf,
  NFT_DATA_VERDICT,
  NFT_SET_CONCAT,
  NFT_SET_MAP,
  NFTA_LIST_ELEM,
  NFTA_SET,
  NFTA_SET_DESC,
  NFTA_SET_FIELD_LEN,
  namesOf,
  setFlagBits,
} from '../constants.ts';
import { concatLength, concatType, type Field, isTypeof } from '../fields.ts';
import type { NftSet, SetInfo, SetRef } from '../objects.ts';
import {
  concatUserdata,
  readUserdataText,
  type UserdataRecord,
  userdataText,
  userdataU32,
} from '../userdata.ts';
import { checkName, readTableRef, required } from './objects.ts';

/** Sets and maps, with the user data from which nft learns how they were declared. */

const SETDATA = {
  KEY_BYTE_ORDER: 0,
  DATA_BYTE_ORDER: 1,
  KEY_TYPEOF: 3,
  DATA_TYPEOF: 4,
  DATA_INTERVAL: 6,
  COMMENT: 7,
} as const;
const byteOrders = { unspecified: 0, host: 1, network: 2 } as const;
const EXPR_VERDICT = 1;
const EXPR_CONCAT = 13;
const nothing = new Uint8Array(0);

/** `id` identifies the set within its batch; the kernel requires one. */
export function writeSetRef(writer: MessageWriter, set: SetRef): void {
  writer.string(NFTA_SET.TABLE, checkName('table', set.table.name));
  writer.string(NFTA_SET.NAME, checkName('set', set.name));
}

export function writeSet(writer: MessageWriter, set: NftSet, id: number): void {
  checkDeclaration(set);
  writeSetRef(writer, set);
  writer.u32Be(NFTA_SET.FLAGS, setFlags(set));
  writer.u32Be(NFTA_SET.KEY_TYPE, concatType(set.key));
  writer.u32Be(NFTA_SET.KEY_LEN, concatLength(set.key));
  if (set.data !== undefined) {
    const verdict = set.data === 'verdict';
    writer.u32Be(NFTA_SET.DATA_TYPE, verdict ? NFT_DATA_VERDICT : concatType(set.data));
    writer.u32Be(NFTA_SET.DATA_LEN, verdict ? 0 : concatLength(set.data));
  }
  writer.u32Be(NFTA_SET.ID, id);
  writeDescription(writer, set);
  if (set.timeoutMs !== undefined) writer.u64Be(NFTA_SET.TIMEOUT, BigInt(set.timeoutMs));
  if (set.gcIntervalMs !== undefined) writer.u32Be(NFTA_SET.GC_INTERVAL, set.gcIntervalMs);
  writer.data(NFTA_SET.USERDATA, setUserdata(set));
}

export function readSet(message: NetlinkMessage): SetInfo {
  const a = AttributeMap.of(message);
  const flags = a.u32Be(NFTA_SET.FLAGS) ?? 0;
  const dataType = flags & NFT_SET_MAP ? a.u32Be(NFTA_SET.DATA_TYPE) : undefined;
  const size = a.nestedMap(NFTA_SET.DESC)?.u32Be(NFTA_SET_DESC.SIZE);
  const timeout = a.u64Be(NFTA_SET.TIMEOUT);
  const gcIntervalMs = a.u32Be(NFTA_SET.GC_INTERVAL);
  const userdata = a.bytes(NFTA_SET.USERDATA);
  const comment = userdata && readUserdataText(userdata, SETDATA.COMMENT);
  return {
    table: readTableRef(message, a.string(NFTA_SET.TABLE)),
    name: required(a.string(NFTA_SET.NAME), 'set', 'a name'),
    flags: namesOf(setFlagBits, flags),
    keyType: a.u32Be(NFTA_SET.KEY_TYPE) ?? 0,
    keyLength: a.u32Be(NFTA_SET.KEY_LEN) ?? 0,
    ...(dataType !== undefined && { dataType }),
    // For verdicts the kernel reports the size of its own structure.
    ...(dataType !== undefined &&
      dataType !== NFT_DATA_VERDICT && { dataLength: a.u32Be(NFTA_SET.DATA_LEN) ?? 0 }),
    ...(size !== undefined && { size }),
    ...(timeout !== undefined && { timeoutMs: Number(timeout) }),
    ...(gcIntervalMs !== undefined && { gcIntervalMs }),
    ...(comment !== undefined && { comment }),
  };
}

/** The kernel's flags of a set, with those that follow from its fields. */
export function setFlags(set: NftSet): number {
  const map = set.data === undefined ? 0 : NFT_SET_MAP;
  return bitsOf(setFlagBits, set.flags) | map | (isConcatInterval(set) ? NFT_SET_CONCAT : 0);
}

/** Ranges over several fields: only then must the kernel know the fields. */
function isConcatInterval(set: NftSet): boolean {
  return set.key.length > 1 && (set.flags?.includes('interval') ?? false);
}

function writeDescription(writer: MessageWriter, set: NftSet): void {
  if (set.size === undefined && !isConcatInterval(set)) return;
  const description = writer.beginNested(NFTA_SET.DESC);
  if (set.size !== undefined) writer.u32Be(NFTA_SET_DESC.SIZE, set.size);
  if (isConcatInterval(set)) {
    const concat = writer.beginNested(NFTA_SET_DESC.CONCAT);
    for (const field of set.key) {
      const nest = writer.beginNested(NFTA_LIST_ELEM);
      writer.u32Be(NFTA_SET_FIELD_LEN, field.length);
      writer.endNested(nest);
    }
    writer.endNested(concat);
  }
  writer.endNested(description);
}

/** Throws RangeError. nft fails on a whole table if a set declared with `type` has a field without a type name. */
function checkDeclaration(set: NftSet): void {
  const fields = [...set.key, ...(Array.isArray(set.data) ? set.data : [])];
  const described = fields.filter((field) => field.typeof !== undefined);
  if (set.key.length === 0 || (described.length > 0 && described.length < fields.length)) {
    throw new RangeError(`set ${set.name} must have fields, and either all or none of them in typeof form`);
  }
}

function setUserdata(set: NftSet): Uint8Array {
  const records = [userdataU32(SETDATA.KEY_BYTE_ORDER, byteOrder(set.key))];
  const data = set.data === 'verdict' ? undefined : set.data;
  if (set.data !== undefined) records.push(userdataU32(SETDATA.DATA_BYTE_ORDER, data ? byteOrder(data) : 0));
  records.push(...declaration(SETDATA.KEY_TYPEOF, set.key));
  if (data) records.push(...declaration(SETDATA.DATA_TYPEOF, data));
  else if (set.data === 'verdict' && isTypeof(set.key)) {
    records.push({ type: SETDATA.DATA_TYPEOF, value: expression(EXPR_VERDICT, nothing) });
  }
  if (set.data !== undefined) records.push(userdataU32(SETDATA.DATA_INTERVAL, 0));
  if (set.comment) records.push(userdataText(SETDATA.COMMENT, set.comment));
  return concatUserdata(records);
}

function byteOrder(fields: readonly Field[]): number {
  const [first] = fields;
  return first && fields.length === 1 ? byteOrders[first.byteOrder] : byteOrders.unspecified;
}

/** How the fields were declared. nft records plain types only for concatenations, and then not which types. */
function declaration(type: number, fields: readonly Field[]): UserdataRecord[] {
  const [first] = fields;
  if (first && fields.length === 1) return first.typeof ? [{ type, value: first.typeof }] : [];
  const members = fields.flatMap((field, i) => (field.typeof ? [{ type: i, value: field.typeof }] : []));
  return [{ type, value: expression(EXPR_CONCAT, concatUserdata(members)) }];
}

function expression(kind: number, data: Uint8Array): Uint8Array {
  return concatUserdata([userdataU32(0, kind), { type: 1, value: data }]);
}
