import { type CIDR, cidrContains, parseCIDR, parseIP } from '../model/ip.ts';

const loopback = ['127.0.0.0/8', '::1/128'];

/** Admits peers with loopback addresses and those in the given CIDRs or addresses. Throws when an entry is neither. */
export function peerCheck(entries: readonly string[]): (address: string | undefined) => boolean {
  const cidrs = [...loopback, ...entries].map(readEntry);
  return (address) => {
    const ip = address === undefined ? undefined : parseIP(address.replace(/%.*$/, ''));
    return ip !== undefined && cidrs.some((cidr) => cidrContains(cidr, ip));
  };
}

function readEntry(entry: string): CIDR {
  const text = entry.trim();
  const cidr = parseCIDR(text) ?? parseCIDR(`${text}/${text.includes(':') ? 128 : 32}`);
  if (!cidr) throw new Error(`${JSON.stringify(entry)} is neither a CIDR nor an IP address`);
  return cidr;
}
