import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { servicePort } from '../../test/cluster/objects.ts';
import { cidrContains, formatIP, parseCIDR, parseIP } from '../model/ip.ts';
import { type AddressRange, admittedSources, mergeRanges, rangeOfNode } from './source-ranges.ts';

const rangesOf = (texts: readonly string[]) =>
  mergeRanges(texts).map(({ family, first, last }) =>
    [first, last].map((bytes) => formatIP({ family, bytes })).join('-'),
  );

test('mergeRanges sorts CIDRs and addresses and merges what overlaps or adjoins', () => {
  const rows: readonly (readonly [texts: readonly string[], ranges: readonly string[]])[] = [
    [[], []],
    [['10.0.0.0/8'], ['10.0.0.0-10.255.255.255']],
    [['10.0.0.0/8', '10.0.0.0/8'], ['10.0.0.0-10.255.255.255']],
    [['10.1.0.0/16', '10.0.0.0/8', '10.255.0.0/16'], ['10.0.0.0-10.255.255.255']],
    [['10.0.0.0/9', '10.128.0.0/9'], ['10.0.0.0-10.255.255.255']],
    [['10.0.1.0/24', '10.0.2.0/24'], ['10.0.1.0-10.0.2.255']],
    [
      ['192.0.2.9', '10.0.0.0/31'],
      ['10.0.0.0-10.0.0.1', '192.0.2.9-192.0.2.9'],
    ],
    [['192.0.2.7', '192.0.2.8/29'], ['192.0.2.7-192.0.2.15']],
    [['0.0.0.0/0', '10.0.0.0/8'], ['0.0.0.0-255.255.255.255']],
    [['255.255.255.255', '255.255.255.254'], ['255.255.255.254-255.255.255.255']],
    [
      ['fd00::/16', 'fd00:1::/32', '10.0.0.1'],
      ['10.0.0.1-10.0.0.1', 'fd00::-fd00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ],
    [['::/0'], ['::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']],
    [['fd00::1', 'fd00::0'], ['fd00::-fd00::1']],
    [
      ['255.255.255.255', '::'],
      ['255.255.255.255-255.255.255.255', '::-::'],
    ],
  ];
  for (const [texts, ranges] of rows) assert.deepEqual(rangesOf(texts), ranges, texts.join());
});

test('mergeRanges throws an error that names a text that is neither a CIDR nor an address', () => {
  for (const text of ['bogus', '10.0.0.0/33', '']) {
    assert.throws(() => mergeRanges([text]), { message: `"${text}" is neither a CIDR nor an IP address` });
  }
});

/** Prefixes close to each other, so that some overlap or adjoin. */
const ipv4 = fc.tuple(fc.nat(3), fc.nat(255), fc.integer({ min: 20, max: 32 }));
const ipv6 = fc.tuple(fc.nat(3), fc.nat(255), fc.integer({ min: 116, max: 128 }));
const texts = fc.oneof(
  ipv4.map(([a, b, prefix]) => `10.0.${a}.${b}/${prefix}`),
  ipv6.map(([a, b, prefix]) => `fd00::${(a * 256 + b).toString(16)}/${prefix}`),
);
const isIn = (cidrs: readonly string[], address: string) =>
  cidrs.some((text) => {
    const cidr = parseCIDR(text);
    const ip = parseIP(address);
    return cidr && ip && cidrContains(cidr, ip);
  });

/** How many of the ranges an address is in. */
const timesIn = (ranges: readonly AddressRange[], address: string) => {
  const ip = parseIP(address);
  assert.ok(ip);
  return ranges.filter(
    ({ family, first, last }) =>
      family === ip.family && Buffer.compare(first, ip.bytes) <= 0 && Buffer.compare(ip.bytes, last) <= 0,
  ).length;
};

test('mergeRanges neither adds nor loses an address, and no address is in two ranges', () => {
  fc.assert(
    fc.property(fc.array(texts, { maxLength: 12 }), fc.array(texts, { maxLength: 12 }), (cidrs, probes) => {
      const merged = mergeRanges(cidrs);
      for (const probe of [...cidrs, ...probes]) {
        const address = probe.split('/')[0] ?? '';
        assert.equal(timesIn(merged, address), isIn(cidrs, address) ? 1 : 0, address);
      }
      assert.deepEqual(rangesOf(cidrs.toReversed()), rangesOf(cidrs));
    }),
  );
});

test('source ranges that admit the node also admit the load balancer IPs, which it may use as its source', () => {
  const port = servicePort({
    clusterIP: '10.96.0.1',
    sourceRanges: ['10.0.0.0/8', '192.0.2.0/24'],
    loadBalancerVIPs: ['203.0.113.1'],
  });
  assert.equal(rangeOfNode(port, '192.0.2.5'), '192.0.2.0/24');
  assert.deepEqual(admittedSources(port, '192.0.2.5'), ['10.0.0.0/8', '192.0.2.0/24', '203.0.113.1']);
  for (const nodeIP of ['198.51.100.1', 'fd00::1', '']) {
    assert.equal(rangeOfNode(port, nodeIP), undefined);
    assert.deepEqual(admittedSources(port, nodeIP), port.sourceRanges);
  }
});
