import { describeValues } from '../../kernel/nft/describe-element.ts';
import type { Family } from '../../model/ip.ts';
import { toArray } from './bytes.ts';
import type { Value } from './compile.ts';
import { type SetName, setDefinition } from './layout.ts';

/** What an element carries besides its key: `10.244.0.10 . 8080`, `goto cluster-pick-2`; empty for plain sets. */
export function describeValue(family: Family, set: SetName, value: Value): string {
  const { data } = setDefinition(family, set);
  if (data === undefined) return '';
  return data === 'verdict' ? (value.split('\n')[0] ?? '') : describeValues(data, toArray(value));
}
