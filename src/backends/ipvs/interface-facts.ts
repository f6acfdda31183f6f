import { canonicalIPOf, type Family, isLinkLocalIPv6, isLoopback, parseIP } from '../../model/ip.ts';
import { nodePortIPs } from '../../model/node-port-addresses.ts';
import { sameStrings } from '../../model/same-strings.ts';
import type { IpvsSettings } from './settings.ts';

/** What the desired state takes from the node's interfaces. */
export interface InterfaceFacts {
  /** On some interface other than ours: external addresses among them are not bound. */
  readonly addresses: ReadonlySet<string>;
  /** Where node ports are served. */
  readonly nodePortIPs: readonly string[];
}

export const noFacts: InterfaceFacts = { addresses: new Set(), nodePortIPs: [] };

/**
 * Facts from the addresses on all interfaces but our own. Differs from upstream (node-ports-on-node-addresses): a
 * configured range selects among these, so that neither link-local addresses nor our own device serve node ports.
 */
export function interfaceFacts(
  { family, nodePortAddresses }: Pick<IpvsSettings, 'family' | 'nodePortAddresses'>,
  listed: readonly string[],
): InterfaceFacts {
  const addresses = new Set(serviceableAddresses(family, listed));
  return { addresses, nodePortIPs: nodePortIPs(nodePortAddresses, [...addresses]) };
}

export function sameFacts(a: InterfaceFacts, b: InterfaceFacts): boolean {
  return sameStrings([...a.addresses], [...b.addresses]) && sameStrings(a.nodePortIPs, b.nodePortIPs);
}

/**
 * Those of the family that are neither loopback nor IPv6 link-local, canonical and sorted. IPv4 link-local addresses
 * do count.
 */
export function serviceableAddresses(family: Family, listed: readonly string[]): string[] {
  return [...new Set(listed.flatMap((text) => canonicalIPOf(family, text) ?? []))]
    .filter(isServiceable)
    .sort();
}

function isServiceable(address: string): boolean {
  const ip = parseIP(address);
  return ip !== undefined && !isLoopback(ip) && !isLinkLocalIPv6(address);
}
