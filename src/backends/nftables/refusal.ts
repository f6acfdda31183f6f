import { describeElement } from '../../kernel/nft/describe-element.ts';
import type { NftError, NftFailure } from '../../kernel/nft/errors.ts';
import type { Element } from '../../kernel/nft/objects.ts';
import { decodeKey } from './element-codec.ts';
import { isSetName, type SetName, setDefinition } from './layout.ts';
import type { Shadow } from './shadow.ts';

/** Service ports and the reason for each. */
type Culprits = ReadonlyMap<string, Error>;

/**
 * Finds the service ports to leave out after a refusal; none when no service port explains it. Kernel 5.19 and later
 * name the refused elements, so all their owners are left out. Older kernels name a message; one owner among those
 * with an element in it is found by trying.
 */
export async function culpritsOf(
  error: NftError,
  shadow: Shadow,
  isAcceptedWithout: (keys: readonly string[]) => Promise<boolean>,
): Promise<Culprits> {
  const suspects = suspectsOf(error, shadow);
  if (error.failures.every(({ element }) => element !== undefined)) return suspects;
  let keys = [...suspects.keys()];
  while (keys.length > 1) {
    const half = keys.slice(0, Math.ceil(keys.length / 2));
    keys = (await isAcceptedWithout(half)) ? half : keys.slice(half.length);
  }
  return new Map(keys.map((key) => [key, error]));
}

/** Service ports that may have caused a refusal. Empty when one of its failures is not about a service port. */
function suspectsOf(error: NftError, shadow: Shadow): Culprits {
  const suspects = new Map<string, Error>();
  for (const failure of error.failures) {
    const set = setOf(failure);
    const owned = set ? suspectsIn(set, failure, shadow) : [];
    if (owned.length === 0) return new Map();
    for (const [owner, text] of owned) suspects.set(owner, new Error(text, { cause: error }));
  }
  return suspects;
}

/** Only additions count: a deletion fails when another program has deleted the element. */
function setOf({ operation }: NftFailure): SetName | undefined {
  if (operation?.kind !== 'element' || operation.verb !== 'add' || !('name' in operation.object))
    return undefined;
  return isSetName(operation.object.name) ? operation.object.name : undefined;
}

function suspectsIn(
  set: SetName,
  { operation, element, errno, text }: NftFailure,
  shadow: Shadow,
): [owner: string, text: string][] {
  const elements: readonly Element[] = element ? [element] : (operation?.elements ?? []);
  const owners = shadow.ownersOf(set, new Set(elements.map(decodeKey)));
  return elements.flatMap((one) => {
    const owner = owners.get(decodeKey(one));
    if (owner === undefined) return [];
    const what = describeElement(setDefinition(shadow.settings.family, set), one);
    return [[owner, `${what}: ${errno}${text === '' ? '' : ` (${text})`}`]];
  });
}
