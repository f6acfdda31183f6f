/** Prefix and a digit or two of the hash: a hundred and some buckets of about the same size. */
const bucketLength = 10;

/** A line that makes a chain, or empties it. */
export function declaration(chain: string): string {
  return `:${chain} - [0:0]`;
}

/**
 * Declares chains in the order of their names. The iptables programs that stand on nf_tables keep them in a sorted list
 * that they walk for every insertion, so that for chains in no order (as hashed names come) their time grows with the
 * square of the number of chains. Sorted bucket by bucket, so that no step takes long.
 */
export function* declarations(chains: Iterable<string>): Generator<string[]> {
  const buckets = new Map<string, string[]>();
  for (const chain of chains) {
    const start = chain.slice(0, bucketLength);
    const bucket = buckets.get(start);
    if (bucket) bucket.push(chain);
    else buckets.set(start, [chain]);
  }
  for (const start of [...buckets.keys()].sort()) {
    yield (buckets.get(start) ?? []).sort().map(declaration);
  }
}
