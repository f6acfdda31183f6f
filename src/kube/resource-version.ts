/**
 * Orders two resource versions: negative when `a` is older. They are decimal numbers of any length; anything
 * else (an aggregated API server may use its own) has no order, and undefined is returned unless they are equal.
 */
export function compareVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!isNumber(a) || !isNumber(b)) return undefined;
  return a.length - b.length || (a < b ? -1 : 1);
}

function isNumber(version: string): boolean {
  return /^[1-9][0-9]*$/.test(version);
}
