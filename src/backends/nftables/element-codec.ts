import { describeVerdict } from '../../kernel/nft/describe-rule.ts';
import type { Verdict } from '../../kernel/nft/expr.ts';
import type { Element } from '../../kernel/nft/objects.ts';
import { type Bytes, fromArray, toArray } from './bytes.ts';
import type { Value } from './compile.ts';
import { type SetName, valueKindOf } from './layout.ts';

/** Stands behind the key of an element that ends an interval; keys themselves are whole words. */
const intervalEndMark = 'e';

/** Key for the element that ends an interval: the first address behind it. */
export function intervalEnd(key: Bytes): Bytes {
  return key + intervalEndMark;
}

/** An element's key in the form of the kernel adapter. */
export function encodeKey(key: Bytes): Element {
  return key.length % 4 === 1 ? { key: toArray(key.slice(0, -1)), intervalEnd: true } : { key: toArray(key) };
}

/** An element in the form of the kernel adapter. */
export function encodeElement(set: SetName, key: Bytes, value: Value): Element {
  switch (valueKindOf(set)) {
    case 'none':
      return encodeKey(key);
    case 'data':
      return { key: toArray(key), data: toArray(value) };
    case 'number':
      return withComment({ key: toArray(key), data: toArray(value.slice(0, 4)) }, value.slice(4));
    case 'verdict': {
      const [text = '', comment = ''] = value.split('\n');
      return withComment({ key: toArray(key), verdict: readVerdict(text) }, comment);
    }
  }
}

export function decodeKey(element: Element): Bytes {
  return fromArray(element.key) + (element.intervalEnd ? intervalEndMark : '');
}

export function decodeValue(element: Element): Value {
  if (element.verdict) return `${describeVerdict(element.verdict)}\n${element.comment ?? ''}`;
  return element.data ? fromArray(element.data) + (element.comment ?? '') : '';
}

function withComment(element: Element, comment: string): Element {
  return comment === '' ? element : { ...element, comment };
}

function readVerdict(text: string): Verdict {
  return text === 'drop' ? { kind: 'drop' } : { kind: 'goto', chain: text.slice('goto '.length) };
}
