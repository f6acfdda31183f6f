import { splitValues } from '../../../kernel/nft/fields.ts';
import type { Element, NftSet } from '../../../kernel/nft/objects.ts';

/** The element of a set that a key hits, by the rules of its kind of set. */
export function findElement(
  { key: fields, flags = [] }: Pick<NftSet, 'key' | 'flags'>,
  elements: readonly Element[],
  key: Uint8Array,
): Element | undefined {
  if (!flags.includes('interval')) return elements.find((element) => Buffer.compare(element.key, key) === 0);
  return fields.length === 1
    ? lastBoundary(elements, key)
    : elements.find((element) => isWithin(fields, element, key));
}

/** Ranges of one field are kept as their first value, and an end mark at the first value behind them. */
function lastBoundary(elements: readonly Element[], key: Uint8Array): Element | undefined {
  const passed = elements.filter((element) => Buffer.compare(element.key, key) <= 0);
  // Where one range ends and the next begins, the beginning counts.
  passed.sort(
    (a, b) => Buffer.compare(a.key, b.key) || Number(b.intervalEnd ?? 0) - Number(a.intervalEnd ?? 0),
  );
  const last = passed.at(-1);
  return last?.intervalEnd ? undefined : last;
}

/** Ranges of several fields have a first and a last value in each. */
function isWithin(
  fields: NftSet['key'],
  { key: first, keyEnd: last = first }: Element,
  key: Uint8Array,
): boolean {
  const [firsts, lasts, values] = [first, last, key].map((joined) => splitValues(fields, joined));
  return (values ?? []).every(
    (value, i) =>
      Buffer.compare(firsts?.[i] ?? value, value) <= 0 && Buffer.compare(value, lasts?.[i] ?? value) <= 0,
  );
}
