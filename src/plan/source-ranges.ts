import { bitsOf, type CIDR, cidrContains, type Family, parseCIDR, parseIP } from '../model/ip.ts';
import type { ServicePort } from '../model/service-port.ts';

/**
 * The clients that may reach the load balancer IPs of a service port with source ranges, as CIDRs and addresses. When
 * the ranges admit the node, the load balancer IPs are admitted too: a node with such an IP on an interface connects to
 * it from that IP.
 */
export function admittedSources(port: ServicePort, nodeIP: string): readonly string[] {
  const { sourceRanges, loadBalancerVIPs } = port;
  return rangeOfNode(port, nodeIP) === undefined ? sourceRanges : [...sourceRanges, ...loadBalancerVIPs];
}

/** The first source range that contains the node's address; undefined when none does. */
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
 * Merges CIDRs and single addresses into as few ranges as possible, sorted, IPv4 before IPv6: a kernel interval set
 * refuses ranges that overlap. Throws on any other text.
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

/** Parses a CIDR, or an address as the CIDR that contains only it. Throws on any other text. */
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
