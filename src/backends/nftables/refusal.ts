import type { NftError, NftFailure } from '../../kernel/nft/errors.ts';
import type { Element } from '../../kernel/nft/objects.ts';
import { decodeKey } from './element-codec.ts';
import { isSetName } from './layout.ts';
import type { Shadow } from './shadow.ts';

/**
 * The service ports that may be behind a refusal: one when the kernel says which element it is about, else all that
 * have an element in the refused message. Empty when no single service port explains it.
 */
export function suspectsOf(error: NftError, shadow: Shadow): string[] {
  const suspects = new Set<string>();
  for (const failure of error.failures) {
    const owners = ownersOf(failure, shadow);
    if (owners.length === 0) return [];
    for (const owner of owners) suspects.add(owner);
  }
  return [...suspects];
}

/** Only additions: a deletion that fails says that somebody else deleted it. */
function ownersOf({ operation, element }: NftFailure, shadow: Shadow): string[] {
  if (operation?.kind !== 'element' || operation.verb !== 'add' || !('name' in operation.object)) return [];
  const { name } = operation.object;
  if (!isSetName(name)) return [];
  const elements: readonly Element[] = element ? [element] : (operation.elements ?? []);
  return elements.flatMap((one) => shadow.ownerOf(name, decodeKey(one)) ?? []);
}
