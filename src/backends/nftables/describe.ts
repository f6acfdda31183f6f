import { describeValues } from '../../kernel/nft/describe-element.ts';
import type { Family } from '../../model/ip.ts';
import { toArray } from './bytes.ts';
import type { Value } from './compile.ts';
import type { Frontend } from './frontends.ts';
import { type SetName, setDefinition } from './layout.ts';

/** What an element carries besides its key: `10.244.0.10 . 8080`, `goto cluster-pick-2`; empty for plain sets. */
export function describeValue(family: Family, set: SetName, value: Value): string {
  const { data } = setDefinition(family, set);
  if (data === undefined) return '';
  return data === 'verdict' ? (value.split('\n')[0] ?? '') : describeValues(data, toArray(value));
}

/** A frontend in the same words: `198.51.100.1 . tcp . 80`, or `tcp . 30080` for a node port. */
export function describeFrontend(family: Family, { key, kind }: Frontend): string {
  const { key: fields } = setDefinition(family, kind === 'nodeport' ? 'nodeports' : 'frontends');
  return describeValues(fields, toArray(key));
}
