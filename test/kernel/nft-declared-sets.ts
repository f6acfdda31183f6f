import { setFlags } from '../../src/kernel/nft/codec/set.ts';
import { NFT_DATA_VERDICT, namesOf, setFlagBits } from '../../src/kernel/nft/constants.ts';
import {
  concatLength,
  concatType,
  type Field,
  numgenRandom,
  typeOf,
  types,
} from '../../src/kernel/nft/fields.ts';
import type { NftSet, SetInfo } from '../../src/kernel/nft/objects.ts';

/** The sets of ip.nft, and those sets of ip6.nft that this program can declare. */
export function declaredSets(): NftSet[] {
  const v4 = { family: 'ip', name: 'kube-proxy' } as const;
  const v6 = { family: 'ip6', name: 'kube-proxy' } as const;
  const { ipDaddr, ipSaddr, ip6Saddr, l4proto, thDport, mark, iifname } = typeOf;
  const { ipv4Addr, ipv6Addr, inetProto, inetService, ifname } = types;
  const frontend = [ipv4Addr, inetProto, inetService];
  const slot = numgenRandom(65536);
  const sets: [NftSet['table'], string, number, readonly Field[], Partial<NftSet>][] = [
    [
      v4,
      'endpoints',
      1,
      [ipDaddr, l4proto, thDport, slot],
      { data: [ipDaddr, thDport], comment: 'the endpoints' },
    ],
    [v4, 'frontends', 2, frontend, { data: 'verdict', size: 100_000 }],
    [
      v4,
      'aff',
      3,
      [ipv4Addr, inetService],
      { flags: ['timeout', 'dynamic'], timeoutMs: 10_800_000, size: 1000 },
    ],
    [
      v4,
      'affmap',
      4,
      [ipDaddr, l4proto, thDport, ipSaddr],
      { data: [ipDaddr, thDport], flags: ['timeout', 'dynamic'], timeoutMs: 10_800_000, size: 1_000_000 },
    ],
    [v4, 'ranges', 5, [...frontend, ipv4Addr], { flags: ['interval'] }],
    [v4, 'cidrs', 6, [ipv4Addr], { flags: ['interval'], comment: 'service cidrs' }],
    [v4, 'ips', 7, [ipv4Addr], {}],
    [v4, 'np', 8, [inetProto, inetService], {}],
    [v4, '__set%d', 9, [l4proto], { flags: ['anonymous', 'constant'], size: 3 }],
    [v6, 'm2', 2, [mark, iifname, ip6Saddr], { data: 'verdict' }],
    [v6, 'm3', 3, [ipv6Addr], { data: [ipv6Addr] }],
    [v6, 'm4', 4, [types.mark, ifname], { data: [ipv6Addr, inetService], flags: ['timeout'] }],
    [v6, 'm6', 6, [inetService], { data: 'verdict' }],
    [v6, 's1', 7, [numgenRandom(4)], {}],
    [v6, 's2', 8, [ifname], {}],
    [v6, 's3', 9, [types.mark], {}],
    [v6, 's4', 10, [inetService], { flags: ['interval'] }],
    [v6, 'c2', 13, [ipv6Addr, ipv6Addr, inetProto, inetService], {}],
  ];
  return sets.map(([table, name, id, key, rest]) => ({ table, name, id, key, ...rest }));
}

/** The SetInfo that the kernel reports for a declared set. */
export function setInfo(set: NftSet): SetInfo {
  const data = set.data;
  return {
    table: set.table,
    name: set.name,
    flags: namesOf(setFlagBits, setFlags(set)),
    keyType: concatType(set.key),
    keyLength: concatLength(set.key),
    ...(data === 'verdict' && { dataType: NFT_DATA_VERDICT }),
    ...(data !== undefined &&
      data !== 'verdict' && { dataType: concatType(data), dataLength: concatLength(data) }),
    ...(set.size !== undefined && { size: set.size }),
    ...(set.timeoutMs !== undefined && { timeoutMs: set.timeoutMs }),
    ...(set.gcIntervalMs !== undefined && { gcIntervalMs: set.gcIntervalMs }),
    ...(set.comment !== undefined && { comment: set.comment }),
  };
}
