import type { Field } from '../../kernel/nft/fields.ts';
import { type Family, formatIP } from '../../model/ip.ts';
import { type Bytes, readWord, toArray } from './bytes.ts';
import type { Value } from './compile.ts';
import type { Frontend } from './frontends.ts';
import { type SetName, setDefinition } from './layout.ts';

/** An element in the words of `nft list`: `endpoints 10.96.0.1 . tcp . 80 . 0 : 10.244.0.10 . 8080`. */
export function describeElement(family: Family, set: SetName, key: Bytes, value: Value): string {
  const left = describeKey(family, set, key);
  return setDefinition(family, set).data === undefined
    ? left
    : `${left} : ${describeValue(family, set, value)}`;
}

/** The set and the key in it: `endpoints 10.96.0.1 . tcp . 80 . 0`. */
export function describeKey(family: Family, set: SetName, key: Bytes): string {
  return `${set} ${describeFields(setDefinition(family, set).key, key)}`;
}

/** What an element carries besides its key: `10.244.0.10 . 8080`, `goto cluster-pick-2`; empty for plain sets. */
export function describeValue(family: Family, set: SetName, value: Value): string {
  const { data } = setDefinition(family, set);
  if (data === undefined) return '';
  return data === 'verdict' ? (value.split('\n')[0] ?? '') : describeFields(data, value);
}

/** A frontend in the same words: `198.51.100.1 . tcp . 80`, or `tcp . 30080` for a node port. */
export function describeFrontend(family: Family, { key, kind }: Frontend): string {
  const { key: fields } = setDefinition(family, kind === 'nodeport' ? 'nodeports' : 'frontends');
  return describeFields(fields, key);
}

function describeFields(fields: readonly Field[], bytes: Bytes): string {
  let at = 0;
  const parts = fields.map((field) => {
    const part = describeField(field, bytes.slice(at, at + field.length));
    at += (field.length + 3) & ~3;
    return part;
  });
  return parts.join(' . ');
}

/** nft's datatype numbers of the fields that this layout has. */
function describeField({ type }: Field, bytes: Bytes): string {
  switch (type) {
    case 7:
      return formatIP({ family: 'IPv4', bytes: toArray(bytes) });
    case 8:
      return formatIP({ family: 'IPv6', bytes: toArray(bytes) });
    case 12:
      return { 6: 'tcp', 17: 'udp', 132: 'sctp' }[bytes.charCodeAt(0)] ?? String(bytes.charCodeAt(0));
    case 13:
      return String((bytes.charCodeAt(0) << 8) | bytes.charCodeAt(1));
    case 23:
      return `${(readWord(bytes) >>> 16).toString(16)}:${(readWord(bytes) & 0xffff).toString(16)}`;
    default:
      return String(readWord(bytes));
  }
}
