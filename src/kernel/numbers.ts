import type { Family } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';

/** Address families (AF_INET, AF_INET6) and IP protocols by the numbers that every kernel interface uses. */
export const addressFamilies: Readonly<Record<Family, number>> = { IPv4: 2, IPv6: 10 };
export const protocolNumbers: Readonly<Record<Protocol, number>> = { TCP: 6, UDP: 17, SCTP: 132 };
/** The same protocols by the names that iptables, ipset and nft use: `tcp`. */
export const protocolsByTool: ReadonlyMap<string, number> = new Map(
  Object.entries(protocolNumbers).map(([name, number]) => [name.toLowerCase(), number]),
);

/** The name that stands for a number in a table of numbers; undefined when none does. */
export function nameOf<K extends string>(
  numbers: Readonly<Record<K, number>>,
  wanted: number | undefined,
): K | undefined {
  for (const name in numbers) if (numbers[name] === wanted) return name;
  return undefined;
}
