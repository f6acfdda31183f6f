import {
  bitsOf,
  type CIDR,
  cidrContains,
  type Family,
  families,
  formatIP,
  isLoopback,
  parseCIDR,
  parseIP,
} from './ip.ts';

/** Which of the node's addresses serve node ports in one family. */
export interface NodePortAddresses {
  readonly family: Family;
  /** Canonical and of this family; never empty. */
  readonly cidrs: readonly CIDR[];
  /** Every local address serves node ports; `cidrs` is then the zero CIDR alone. */
  readonly matchAll: boolean;
  /** A CIDR, possibly 0.0.0.0/0, covers IPv4 loopback; always false for IPv6. */
  readonly containsIPv4Loopback: boolean;
  /** A CIDR lies within the loopback range. */
  readonly explicitLoopback: boolean;
}

/** Replaces the keywords `primary`, `localhost` and `all` by CIDRs; order and duplicates are kept. */
export function expandNodePortAddresses(
  entries: readonly string[],
  nodeIPs: Readonly<Record<Family, string>>,
): string[] {
  return entries.flatMap((entry) => {
    switch (entry) {
      case 'primary':
        return families.flatMap((family) => hostCIDR(nodeIPs[family], family));
      case 'localhost':
        return ['127.0.0.0/8', '::1/128'];
      case 'all':
        return ['0.0.0.0/0', '::/0'];
      default:
        return [entry];
    }
  });
}

/** The addresses of one family from expanded entries; without an entry of the family, all addresses. */
export function nodePortAddresses(family: Family, entries: readonly string[]): NodePortAddresses {
  const own = entries.flatMap((entry) => parseCIDR(entry.trim()) ?? []).filter((c) => c.family === family);
  const matchAll = own.length === 0 || own.some((cidr) => cidr.prefix === 0);
  const cidrs = matchAll ? [zeroCIDR(family)] : own;
  const explicitLoopback = cidrs.some(isLoopback);
  return {
    family,
    cidrs,
    matchAll,
    containsIPv4Loopback: family === 'IPv4' && (explicitLoopback || cidrs.some(coversIPv4Loopback)),
    explicitLoopback,
  };
}

/** The given interface addresses that serve node ports: canonical, without duplicates, in the given order. */
export function nodePortIPs(set: NodePortAddresses, interfaceAddresses: readonly string[]): string[] {
  const ips = interfaceAddresses.flatMap((text) => parseIP(text) ?? []);
  return [...new Set(ips.filter((ip) => set.cidrs.some((cidr) => cidrContains(cidr, ip))).map(formatIP))];
}

function hostCIDR(nodeIP: string, family: Family): string[] {
  const ip = parseIP(nodeIP);
  return ip === undefined || isLoopback(ip) ? [] : [`${formatIP(ip)}/${bitsOf(family)}`];
}

function zeroCIDR(family: Family): CIDR {
  return { family, bytes: new Uint8Array(bitsOf(family) / 8), prefix: 0 };
}

function coversIPv4Loopback(cidr: CIDR): boolean {
  return cidrContains(cidr, { family: 'IPv4', bytes: Uint8Array.of(127, 0, 0, 0) });
}
