import { bitsOf, type CIDR, cidrContains, type Family, parseCIDR, parseIP } from '../model/ip.ts';
import type { ServicePort } from '../model/service-port.ts';

/**
 * Who may reach the load balancer addresses of a service port that has source ranges, as CIDRs and addresses. A node
 * that reaches such an address and has it itself uses it as its source: where the node is admitted, so are they.
 */
export function admittedSources(port: ServicePort, nodeIP: string): readonly string[] {
  const { sourceRanges, loadBalancerVIPs } = port;
  return rangeOfNode(port, nodeIP) === undefined ? sourceRanges : [...sourceRanges, ...loadBalancerVIPs];
}

/** The source range that admits the node itself. */
export function rangeOfNode({ sourceRanges }: ServicePort, nodeIP: string): string | undefined {
  const node = parseIP(nodeIP);
  return sourceRanges.find((text) => {
    const cidr = parseCIDR(text);
    return cidr !== undefined && node !== undefined && cidrContains(cidr, node);
  });
}

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

function intervalOf(text: string): Interval {
  const { family, bytes, prefix } = cidrOf(text);
  const first = bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  return { family, first, last: first + sizeOf(family, prefix) - 1n };
}

/** A CIDR, or an address as one of that alone; throws on any other text. */
export function cidrOf(text: string): CIDR {
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
