/** An object that an endpoint refers to; the fields are empty when they are absent. */
export interface Target {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** The pod that an endpoint in `namespace` refers to: `name`, or `namespace/name` in another namespace; '' when none. */
export function podName(target: Target, namespace: string): string {
  const { kind, name } = target;
  if (kind !== 'Pod' || name === '') return '';
  return target.namespace === '' || target.namespace === namespace ? name : `${target.namespace}/${name}`;
}

/** The longest `namespace/name` that Kubernetes allows. Its length must fit in one character. */
const maxLength = 63 + 1 + 253;

/**
 * Packs names into one string, because a node may know a million of them and pods of one Service have long common
 * beginnings. Each name is stored as the number of characters that it shares with the name before, the number of other
 * characters, and these characters. A missing, empty or too long name is stored as empty. Returns undefined when
 * all are empty.
 */
export function packNames(names: readonly (string | undefined)[]): string | undefined {
  const parts: string[] = [];
  let before = '';
  let isEmpty = true;
  for (const given of names) {
    const name = given !== undefined && given.length <= maxLength ? given : '';
    const shared = sharedLength(before, name);
    parts.push(String.fromCharCode(shared, name.length - shared), name.slice(shared));
    // An empty name leaves what the next one shares with those before it.
    if (name !== '') {
      before = name;
      isEmpty = false;
    }
  }
  // A joined string is flat; V8 would keep the parts of a concatenated one.
  return isEmpty ? undefined : parts.join('');
}

/** The names in their order; '' stands for a missing one. */
export function unpackNames(packed: string): string[] {
  const names: string[] = [];
  let before = '';
  for (let at = 0; at < packed.length; ) {
    const shared = packed.charCodeAt(at);
    const end = at + 2 + packed.charCodeAt(at + 1);
    const name = before.slice(0, shared) + packed.slice(at + 2, end);
    names.push(name);
    if (name !== '') before = name;
    at = end;
  }
  return names;
}

function sharedLength(a: string, b: string): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}
