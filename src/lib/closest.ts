/**
 * The candidate that a misspelt word probably means: one that begins with it, or else the one with the fewest typing
 * errors. Undefined when none is close.
 */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const longer = candidates.filter((candidate) => candidate.startsWith(word));
  if (word.length > 1 && longer[0] !== undefined && longer.length === 1) return longer[0];
  // Two errors in a word of three letters would make any word close.
  const limit = Math.min(2, Math.floor(word.length / 3));
  let best: string | undefined;
  let least = limit + 1;
  for (const candidate of candidates) {
    const errors = typingErrors(word, candidate);
    if (errors < least) [best, least] = [candidate, errors];
  }
  return best;
}

/** The number of characters to insert, delete, replace or swap with their neighbour to get from `a` to `b`. */
function typingErrors(a: string, b: string): number {
  // row[j] is the number for a prefix of a and the first j characters of b.
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        (row[j - 1] ?? 0) + 1,
        (last[j] ?? 0) + 1,
        (last[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap && i > 1 && j > 1 ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
