import { canonicalIP, type Family, familyOf, isLoopback, isUnspecified, parseIP } from './ip.ts';
import type { NodeObject } from './objects.ts';

/** The node's address in each family, and its primary family. */
export interface NodeAddresses {
  readonly primary: Family;
  readonly ips: Readonly<Record<Family, string>>;
  /** The primary family has only a loopback address; the caller logs it. */
  readonly primaryIsLoopback: boolean;
}

/**
 * The addresses of a node in canonical form: its first address, and the first of the other family. Internal addresses
 * come before external ones.
 */
export function nodeIPs(node: NodeObject): string[] {
  const usable = [...addressesOf(node, 'InternalIP'), ...addressesOf(node, 'ExternalIP')];
  const first = usable[0];
  if (first === undefined) return [];
  const primary = familyOf(first);
  const second = usable.find((ip) => familyOf(ip) !== primary);
  return second === undefined ? [first] : [first, second];
}

/** The node's addresses from its Node object and from `bindAddress`, which takes precedence. */
export function detectNodeAddresses(fromNode: readonly string[], bindAddress: string): NodeAddresses {
  const ips: Record<Family, string> = { IPv4: '127.0.0.1', IPv6: '::1' };
  let primary: Family = 'IPv4';
  // Last to first, so that the first address decides the primary family and wins within its family.
  for (const text of [...overrideOf(bindAddress), ...fromNode].reverse()) {
    const ip = canonicalIP(text);
    const family = ip && familyOf(ip);
    if (!ip || !family) continue;
    ips[family] = ip;
    primary = family;
  }
  const first = parseIP(ips[primary]);
  return { primary, ips, primaryIsLoopback: first !== undefined && isLoopback(first) };
}

function addressesOf(node: NodeObject, type: string): string[] {
  return node.addresses.flatMap((entry) => {
    const ip = entry.type === type ? canonicalIP(entry.address) : undefined;
    return ip === undefined ? [] : [ip];
  });
}

function overrideOf(bindAddress: string): string[] {
  const ip = parseIP(bindAddress);
  return ip === undefined || isUnspecified(ip) ? [] : [bindAddress];
}
