import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cidrContains, formatIP, parseCIDR, parseIP } from '../model/ip.ts';
import { mergePrefixes, mergeRanges } from './source-ranges.ts';

const rangesOf = (texts: readonly string[]) =>
  mergeRanges(texts).map(({ family, first, last }) =>
    [first, last].map((bytes) => formatIP({ family, bytes })).join('-'),
  );

test('ranges and prefixes of what is given', () => {
  const rows: readonly (readonly [
    texts: readonly string[],
    ranges: readonly string[],
    prefixes: readonly string[],
  ])[] = [
    [[], [], []],
    [['10.0.0.0/8'], ['10.0.0.0-10.255.255.255'], ['10.0.0.0/8']],
    [['10.0.0.0/8', '10.0.0.0/8'], ['10.0.0.0-10.255.255.255'], ['10.0.0.0/8']],
    [['10.1.0.0/16', '10.0.0.0/8', '10.255.0.0/16'], ['10.0.0.0-10.255.255.255'], ['10.0.0.0/8']],
    [['10.0.0.0/9', '10.128.0.0/9'], ['10.0.0.0-10.255.255.255'], ['10.0.0.0/8']],
    [['10.0.1.0/24', '10.0.2.0/24'], ['10.0.1.0-10.0.2.255'], ['10.0.1.0/24', '10.0.2.0/24']],
    [
      ['192.0.2.9', '10.0.0.0/31'],
      ['10.0.0.0-10.0.0.1', '192.0.2.9-192.0.2.9'],
      ['10.0.0.0/31', '192.0.2.9/32'],
    ],
    [['192.0.2.7', '192.0.2.8/29'], ['192.0.2.7-192.0.2.15'], ['192.0.2.7/32', '192.0.2.8/29']],
    [['0.0.0.0/0', '10.0.0.0/8'], ['0.0.0.0-255.255.255.255'], ['0.0.0.0/0']],
    [['255.255.255.255', '255.255.255.254'], ['255.255.255.254-255.255.255.255'], ['255.255.255.254/31']],
    [
      ['fd00::/16', 'fd00:1::/32', '10.0.0.1'],
      ['10.0.0.1-10.0.0.1', 'fd00::-fd00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
      ['10.0.0.1/32', 'fd00::/16'],
    ],
    [['::/0'], ['::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'], ['::/0']],
    [['fd00::1', 'fd00::0'], ['fd00::-fd00::1'], ['fd00::/127']],
    [
      ['255.255.255.255', '::'],
      ['255.255.255.255-255.255.255.255', '::-::'],
      ['255.255.255.255/32', '::/128'],
    ],
  ];
  for (const [texts, ranges, prefixes] of rows) {
    assert.deepEqual(rangesOf(texts), ranges, texts.join());
    assert.deepEqual(mergePrefixes(texts), prefixes, texts.join());
  }
});

test('anything else is refused by name', () => {
  for (const text of ['bogus', '10.0.0.0/33', '']) {
    assert.throws(() => mergeRanges([text]), { message: `"${text}" is neither a CIDR nor an IP address` });
    assert.throws(() => mergePrefixes([text]), { message: `"${text}" is neither a CIDR nor an IP address` });
  }
});

/** Prefixes close to each other, so that they do meet. */
const ipv4 = fc.tuple(fc.nat(3), fc.nat(255), fc.integer({ min: 20, max: 32 }));
const ipv6 = fc.tuple(fc.nat(3), fc.nat(255), fc.integer({ min: 116, max: 128 }));
const texts = fc.oneof(
  ipv4.map(([a, b, prefix]) => `10.0.${a}.${b}/${prefix}`),
  ipv6.map(([a, b, prefix]) => `fd00::${(a * 256 + b).toString(16)}/${prefix}`),
);
const holds = (cidrs: readonly string[], address: string) =>
  cidrs.filter((text) => {
    const cidr = parseCIDR(text);
    const ip = parseIP(address);
    return cidr && ip && cidrContains(cidr, ip);
  }).length;

test('merging neither adds nor loses an address, and leaves none in two prefixes', () => {
  fc.assert(
    fc.property(fc.array(texts, { maxLength: 12 }), fc.array(texts, { maxLength: 12 }), (cidrs, probes) => {
      const merged = mergePrefixes(cidrs);
      for (const probe of [...cidrs, ...probes]) {
        const address = probe.split('/')[0] ?? '';
        assert.equal(holds(merged, address), Math.min(1, holds(cidrs, address)), address);
      }
      assert.deepEqual(mergePrefixes(merged.toReversed()), merged);
      assert.deepEqual(rangesOf(merged), rangesOf(cidrs));
    }),
  );
});
