import { formatIP } from '../../model/ip.ts';
import { hostLittleEndian } from '../../native/byte-order.ts';
import { nameOf, protocolNumbers } from '../numbers.ts';
import { describeVerdict } from './describe-rule.ts';
import { type Field, splitValues, types } from './fields.ts';
import type { Element, NftSet } from './objects.ts';

/** An element in the syntax of `nft list`: `endpoints 10.96.0.1 . tcp . 80 . 0 : 10.244.0.10 . 8080`. */
export function describeElement(set: NftSet, element: Element): string {
  const key = describeKey(set, element);
  if (element.verdict) return `${key} : ${describeVerdict(element.verdict)}`;
  return Array.isArray(set.data) && element.data ? `${key} : ${describeValues(set.data, element.data)}` : key;
}

/** Set name and key: `ips 10.0.0.1`, `ranges 10.0.0.0-10.0.0.9`; `before` marks the element that ends an interval. */
export function describeKey(
  { name, key: fields }: Pick<NftSet, 'name' | 'key'>,
  { key, keyEnd = key, intervalEnd = false }: Element,
): string {
  const lasts = splitValues(fields, keyEnd);
  const parts = splitValues(fields, key).map((value, i) => {
    const [first, last] = [value, lasts[i] ?? value].map((each) => describeValue(fields[i], each));
    return first === last ? first : `${first}-${last}`;
  });
  return `${name} ${intervalEnd ? 'before ' : ''}${parts.join(' . ')}`;
}

/** Concatenated values: `10.96.0.1 . tcp . 80`. */
export function describeValues(fields: readonly Field[], joined: Uint8Array): string {
  return splitValues(fields, joined)
    .map((value, i) => describeValue(fields[i], value))
    .join(' . ');
}

function describeValue(field: Field | undefined, value: Uint8Array): string {
  // Another program may have made a set with this name and shorter keys.
  const bytes = new Uint8Array(16);
  bytes.set(value);
  const view = new DataView(bytes.buffer);
  switch (field?.type) {
    case types.ipv4Addr.type:
      return formatIP({ family: 'IPv4', bytes: bytes.subarray(0, 4) });
    case types.ipv6Addr.type:
      return formatIP({ family: 'IPv6', bytes });
    case types.inetProto.type:
      return nameOf(protocolNumbers, bytes[0])?.toLowerCase() ?? String(bytes[0]);
    case types.inetService.type:
      return String(view.getUint16(0));
    case types.classid.type: {
      const word = view.getUint32(0, hostLittleEndian);
      return `${(word >>> 16).toString(16)}:${(word & 0xffff).toString(16)}`;
    }
    default:
      return String(view.getUint32(0, hostLittleEndian));
  }
}
