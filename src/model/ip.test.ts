import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import {
  canonicalIP,
  canonicalIPOf,
  cidrContains,
  familyOf,
  formatCIDR,
  formatIP,
  isLinkLocalIPv6,
  isLoopback,
  isUnspecified,
  joinHostPort,
  otherFamily,
  parseCIDR,
  parseIP,
  splitIPPort,
  toIP,
} from './ip.ts';

test('addresses are parsed and written in canonical form', () => {
  const rows: readonly (readonly [text: string, canonical: string])[] = [
    ['0.0.0.0', '0.0.0.0'],
    ['10.1.2.3', '10.1.2.3'],
    ['255.255.255.255', '255.255.255.255'],
    // Leading zeros are decimal here, not octal: objects written long ago hold such addresses.
    ['010.000.001.09', '10.0.1.9'],
    ['0000000010.0.0.1', '10.0.0.1'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['fd00:0:0:1::0:2', 'fd00:0:0:1::2'],
    ['2001:DB8::A', '2001:db8::a'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:0:0:2:3:0:0:4', '1::2:3:0:0:4'],
    ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
    ['0:1:2:3:4:5:6:7', '0:1:2:3:4:5:6:7'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['::1.2.3.4', '::102:304'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['00001::', '1::'],
    ['::ffff:c000:201', '192.0.2.1'],
  ];
  for (const [text, canonical] of rows) assert.equal(canonicalIP(text), canonical, text);
});

test('texts that are not addresses are refused', () => {
  const rows = [
    '',
    ' ',
    '1',
    '1.2.3',
    '1.2.3.',
    '.1.2.3',
    '1.2.3.4.5',
    '1..2.3',
    '256.1.1.1',
    '1.2.3.999',
    '1.2.3.4 ',
    ' 1.2.3.4',
    '-1.2.3.4',
    '+1.2.3.4',
    '1.2.3.4/24',
    '0x1.2.3.4',
    '1.2.3.a',
    '１.2.3.4',
    ':',
    ':::',
    '1:::2',
    '1::2::3',
    '12345::',
    'g::',
    '::1%eth0',
    '[::1]',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8::',
    '1.2.3.4::',
    '::1.2.3',
    '::1.2.3.4:5',
    ':1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:',
    'None',
    'example.com',
  ];
  for (const text of rows) {
    assert.equal(parseIP(text), undefined, text);
    assert.equal(canonicalIP(text), undefined, text);
    assert.equal(familyOf(text), undefined, text);
  }
});

test('CIDRs: host bits are cleared, mapped prefixes are counted over 128 bits', () => {
  const rows: readonly (readonly [text: string, canonical: string | undefined])[] = [
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['010.1.2.3/08', '10.0.0.0/8'],
    ['10.1.2.3/32', '10.1.2.3/32'],
    ['10.1.2.3/31', '10.1.2.2/31'],
    ['10.1.2.3/0', '0.0.0.0/0'],
    ['fd00:1:2:3::4/32', 'fd00:1::/32'],
    ['fd00::ff/121', 'fd00::80/121'],
    ['::/0', '::/0'],
    ['::ffff:10.1.2.3/104', '10.0.0.0/8'],
    ['::ffff:10.1.2.3/95', '::fffe:0:0/95'],
    ['::ffff:10.1.2.3/8', '::/8'],
    ['::ffff:10.1.2.3/129', undefined],
    ['10.0.0.0/00000008', '10.0.0.0/8'],
    ['10.0.0.0/33', undefined],
    ['fd00::/129', undefined],
    ['10.0.0.0', undefined],
    ['10.0.0.0/', undefined],
    ['10.0.0.0/-1', undefined],
    ['10.0.0.0/8/8', undefined],
    ['10.0.0.0/ 8', undefined],
    ['/8', undefined],
    ['bogus/8', undefined],
    ['', undefined],
  ];
  for (const [text, canonical] of rows) {
    const cidr = parseCIDR(text);
    assert.equal(cidr && formatCIDR(cidr), canonical, text);
  }
});

test('an address of the other family is not canonical for this one', () => {
  assert.equal(canonicalIPOf('IPv4', '010.0.0.1'), '10.0.0.1');
  assert.equal(canonicalIPOf('IPv6', 'FD00::1'), 'fd00::1');
  assert.equal(canonicalIPOf('IPv4', '::ffff:10.0.0.1'), '10.0.0.1');
  assert.equal(canonicalIPOf('IPv4', 'fd00::1'), undefined);
  assert.equal(canonicalIPOf('IPv6', '10.0.0.1'), undefined);
  assert.equal(canonicalIPOf('IPv4', 'bogus'), undefined);
  assert.equal(canonicalIPOf('IPv6', 'bogus'), undefined);
});

test('loopback and unspecified addresses are recognised', () => {
  const kinds = (text: string) => {
    const ip = parseIP(text);
    return ip && [isLoopback(ip), isUnspecified(ip)];
  };
  assert.deepEqual(kinds('127.8.9.1'), [true, false]);
  assert.deepEqual(kinds('128.0.0.1'), [false, false]);
  assert.deepEqual(kinds('::1'), [true, false]);
  assert.deepEqual(kinds('1::1'), [false, false]);
  assert.deepEqual(kinds('0.0.0.0'), [false, true]);
  assert.deepEqual(kinds('::'), [false, true]);
  assert.equal(otherFamily('IPv4'), 'IPv6');
  assert.equal(otherFamily('IPv6'), 'IPv4');
  assert.equal(joinHostPort('10.0.0.1', 80), '10.0.0.1:80');
  assert.equal(joinHostPort('fd00::1', '80'), '[fd00::1]:80');
  for (const ip of ['10.0.0.1', 'fd00::1']) {
    assert.deepEqual(splitIPPort(joinHostPort(ip, 80)), { ip: toIP(ip), port: 80 });
  }
  for (const text of ['10.0.0.1', 'host:80', '']) assert.equal(splitIPPort(text), undefined);
});

const ipv4 = fc.ipV4();
// The oracle reads the obsolete form ::1.2.3.4 as if it were ::ffff:1.2.3.4; Go, and so we, do not.
const ipv6 = fc.ipV6().filter((text) => !/^::\d+\./.test(text));

test('addresses of either family agree with ipaddr.js', () => {
  fc.assert(
    fc.property(fc.oneof(ipv4, ipv6), (text) => {
      const ip = parseIP(text);
      const oracle = ipaddr.process(text);
      assert.ok(ip);
      assert.deepEqual([...ip.bytes], oracle.toByteArray());
      assert.equal(ip.family, oracle.kind() === 'ipv4' ? 'IPv4' : 'IPv6');
      const canonical = formatIP(ip);
      assert.equal(canonical, oracle instanceof ipaddr.IPv6 ? oracle.toRFC5952String() : oracle.toString());
      assert.equal(canonicalIP(canonical), canonical);
    }),
    { numRuns: 1000 },
  );
});

test('containment agrees with ipaddr.js', () => {
  const pair = (address: fc.Arbitrary<string>, bits: number) => fc.tuple(address, address, fc.nat(bits));
  fc.assert(
    fc.property(fc.oneof(pair(ipv4, 32), pair(ipv6, 128)), ([a, b, prefix]) => {
      const base = ipaddr.process(a);
      // A random address is almost never inside, so the base address itself is asked about as well.
      const cidr = parseCIDR(`${base.toString()}/${Math.min(prefix, base.kind() === 'ipv4' ? 32 : 128)}`);
      assert.ok(cidr);
      for (const text of [a, b]) {
        const ip = parseIP(text);
        const other = ipaddr.process(text);
        assert.ok(ip);
        const expected: boolean = other.kind() === base.kind() && other.match(base, cidr.prefix);
        assert.equal(cidrContains(cidr, ip), expected, `${formatCIDR(cidr)} ${text}`);
      }
    }),
    { numRuns: 1000 },
  );
});

test('the parsers never throw, and they accept their own output', () => {
  const soup = fc.string({ unit: fc.constantFrom(...'0123456789abcf.:/% '.split('')), maxLength: 24 });
  fc.assert(
    fc.property(fc.oneof(soup, fc.string()), (text) => {
      const ip = parseIP(text);
      if (ip) assert.equal(canonicalIP(formatIP(ip)), formatIP(ip));
      const cidr = parseCIDR(text);
      if (cidr) assert.deepEqual(parseCIDR(formatCIDR(cidr)), cidr);
    }),
    { numRuns: 2000 },
  );
});

test('link-local IPv6 addresses are recognised', () => {
  for (const address of ['fe80::1', 'febf::1']) assert.ok(isLinkLocalIPv6(address), address);
  for (const address of ['fec0::1', 'fd00::1', '169.254.0.1', '::1', '']) {
    assert.ok(!isLinkLocalIPv6(address), address);
  }
});
