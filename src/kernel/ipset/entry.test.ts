import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { canonicalEntry, formatEntry, parseEntry, SetEntryError } from './entry.ts';
import type { SetType } from './objects.ts';

const types: readonly SetType[] = [
  'hash:ip',
  'hash:ip,port',
  'hash:ip,port,ip',
  'hash:ip,port,net',
  'bitmap:port',
];

suite('canonical texts', () => {
  const rows: [type: SetType, text: string, canonical: string][] = [
    ['hash:ip', '10.0.0.1', '10.0.0.1'],
    ['hash:ip', 'FD00:0::1', 'fd00::1'],
    ['hash:ip,port', '10.0.0.1,tcp:80', '10.0.0.1,tcp:80'],
    ['hash:ip,port', '10.0.0.1,132:80', '10.0.0.1,sctp:80'],
    ['hash:ip,port', '10.0.0.1,47:0', '10.0.0.1,47:0'],
    ['hash:ip,port,ip', 'fd00::1,udp:53,fd00:0::2', 'fd00::1,udp:53,fd00::2'],
    ['hash:ip,port,net', '10.0.0.1,tcp:80,192.0.2.77/24', '10.0.0.1,tcp:80,192.0.2.0/24'],
    ['hash:ip,port,net', '10.0.0.1,tcp:80,192.0.2.7/32', '10.0.0.1,tcp:80,192.0.2.7'],
    ['hash:ip,port,net', 'fd00::1,tcp:80,fd00::ffff/113', 'fd00::1,tcp:80,fd00::8000/113'],
    ['hash:ip,port,net', 'fd00::1,tcp:80,fd00::1/128', 'fd00::1,tcp:80,fd00::1'],
    ['bitmap:port', '0', '0'],
    ['bitmap:port', '65535', '65535'],
  ];
  for (const [type, text, canonical] of rows) {
    test(`${type}: ${text}`, () => {
      assert.equal(canonicalEntry(text, type), canonical);
      assert.equal(canonicalEntry(canonical, type), canonical);
    });
  }
});

suite('refused', () => {
  const rows: [type: SetType, text: string, problem: string][] = [
    ['hash:ip', '', 'invalid address'],
    ['hash:ip', '10.0.0.1,tcp:80', 'has 2 parts, expected 1'],
    ['hash:ip,port', '10.0.0.1', 'has 1 parts, expected 2'],
    ['hash:ip,port', '10.0.0.1,tcp', 'invalid port'],
    ['hash:ip,port', '10.0.0.1,tcp:65536', 'invalid port'],
    ['hash:ip,port', '10.0.0.1,icmp:1', 'unknown protocol'],
    ['hash:ip,port', '10.0.0.1,256:1', 'unknown protocol'],
    ['hash:ip,port,ip', '10.0.0.1,tcp:80,10.0.0.0/24', 'invalid second address'],
    ['hash:ip,port,ip', '10.0.0.1,tcp:80,10.0.0.1,x', 'has 4 parts, expected 3'],
    ['hash:ip,port,net', '10.0.0.1,tcp:80,0.0.0.0/0', 'invalid prefix length'],
    ['hash:ip,port,net', '10.0.0.1,tcp:80,10.0.0.0/33', 'invalid prefix length'],
    ['bitmap:port', '-1', 'invalid port'],
    ['bitmap:port', '80 ', 'invalid port'],
  ];
  for (const [type, text, problem] of rows) {
    test(`${type}: ${JSON.stringify(text)}`, () => {
      const message = `entry ${JSON.stringify(text)} of a set of type ${type}: ${problem}`;
      assert.throws(() => parseEntry(text, type), { message, code: 'ERR_IPSET_ENTRY' });
    });
  }
});

test('any text is refused as an entry or has one canonical spelling', () => {
  const part = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.constantFrom('tcp:80', 'udp:1', '6:9', '10.0.0.0/8', '7', ''),
  );
  const text = fc
    .array(fc.oneof(part, fc.string({ maxLength: 6 })), { maxLength: 4 })
    .map((parts) => parts.join(','));
  fc.assert(
    fc.property(text, fc.constantFrom(...types), (entry, type) => {
      try {
        const canonical = canonicalEntry(entry, type);
        assert.equal(formatEntry(parseEntry(canonical, type)), canonical);
      } catch (error) {
        if (!(error instanceof SetEntryError)) throw error;
      }
    }),
    { numRuns: 3000 },
  );
});
