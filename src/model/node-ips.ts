import { canonicalIP, type Family, familyOf, isLoopback, isUnspecified, parseIP } from './ip.ts';
import type { NodeObject } from './objects.ts';

/** The node's own address in each family, and the family that comes first. */
export interface NodeAddresses {
  readonly primary: Family;
  readonly ips: Readonly<Record<Family, string>>;
  /** Nothing better than loopback is known for the primary family; worth a log line. */
  readonly primaryIsLoopback: boolean;
}

/**
 * The addresses of a node in canonical form, at most one per family: internal addresses before external ones,
 * the first is the primary, the second the first of the other family.
 */
export function nodeIPs(node: NodeObject): string[] {
  const usable = [...addressesOf(node, 'InternalIP'), ...addressesOf(node, 'ExternalIP')];
  const first = usable[0];
  if (first === undefined) return [];
  const primary = familyOf(first);
  const second = usable.find((ip) => familyOf(ip) !== primary);
  return second === undefined ? [first] : [first, second];
}

/** Works out the node's addresses from those of its Node object and from `bindAddress`, which overrides them. */
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
