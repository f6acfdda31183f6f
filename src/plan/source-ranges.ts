import { bitsOf, type CIDR, type Family, formatCIDR, parseCIDR, parseIP } from '../model/ip.ts';

/** Consecutive addresses, both ends included, in network order. */
export interface AddressRange {
  readonly family: Family;
  readonly first: Uint8Array;
  readonly last: Uint8Array;
}

type Interval = { readonly family: Family; readonly first: bigint; readonly last: bigint };

/**
 * The same addresses in as few ranges as possible: sorted, IPv4 before IPv6, apart from each other. A kernel
 * interval set refuses ranges that overlap. Takes CIDRs and single addresses; throws on any other text.
 */
export function mergeRanges(texts: readonly string[]): AddressRange[] {
  return mergeIntervals(texts.map(intervalOf)).map(({ family, first, last }) => ({
    family,
    first: bytesOf(family, first),
    last: bytesOf(family, last),
  }));
}

/** Like `mergeRanges`, as canonical CIDRs: no address is in two of them, and no two make up a larger one. */
export function mergePrefixes(texts: readonly string[]): string[] {
  return mergeIntervals(texts.map(intervalOf)).flatMap(prefixesOf).map(formatCIDR);
}

function intervalOf(text: string): Interval {
  const { family, bytes, prefix } = cidrOf(text);
  const first = bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  return { family, first, last: first + sizeOf(family, prefix) - 1n };
}

function cidrOf(text: string): CIDR {
  const ip = text.includes('/') ? undefined : parseIP(text);
  const cidr = ip ? { ...ip, prefix: bitsOf(ip.family) } : parseCIDR(text);
  if (!cidr) throw new Error(`${JSON.stringify(text)} is neither a CIDR nor an IP address`);
  return cidr;
}

function mergeIntervals(intervals: readonly Interval[]): readonly Interval[] {
  const sorted = intervals.toSorted((a, b) => {
    if (a.family !== b.family) return a.family === 'IPv4' ? -1 : 1;
    return a.first < b.first ? -1 : a.first > b.first ? 1 : 0;
  });
  const merged: Interval[] = [];
  for (const interval of sorted) {
    const before = merged.at(-1);
    if (before?.family !== interval.family || interval.first > before.last + 1n) merged.push(interval);
    else if (interval.last > before.last) merged[merged.length - 1] = { ...before, last: interval.last };
  }
  return merged;
}

/** The fewest prefixes that cover a range exactly: each time the largest that starts where the last one ended. */
function prefixesOf({ family, first, last }: Interval): CIDR[] {
  const prefixes: CIDR[] = [];
  for (let start = first; start <= last; ) {
    let prefix = bitsOf(family);
    while (prefix > 0) {
      const size = sizeOf(family, prefix - 1);
      if (start % size !== 0n || start + size - 1n > last) break;
      prefix--;
    }
    prefixes.push({ family, bytes: bytesOf(family, start), prefix });
    start += sizeOf(family, prefix);
  }
  return prefixes;
}

function sizeOf(family: Family, prefix: number): bigint {
  return 1n << BigInt(bitsOf(family) - prefix);
}

function bytesOf(family: Family, value: bigint): Uint8Array {
  const bytes = new Uint8Array(bitsOf(family) / 8);
  let rest = value;
  for (let i = bytes.length - 1; i >= 0; i--) {
    bytes[i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return bytes;
}
