import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeElement, describeKey } from './describe-element.ts';
import { types } from './fields.ts';
import type { NftSet } from './objects.ts';

const table = { family: 'ip', name: 't' } as const;
const ports: NftSet = {
  table,
  name: 'ports',
  key: [types.ipv4Addr, types.inetProto, types.inetService],
  data: [types.inetService],
};
const key = Uint8Array.of(10, 96, 0, 1, 17, 0, 0, 0, 0, 53, 0, 0);

test('elements are described by the types of their fields, verdicts by their names', () => {
  const data = Uint8Array.of(0x9c, 0x40);
  assert.equal(describeElement(ports, { key, data }), 'ports 10.96.0.1 . udp . 53 : 40000');
  assert.equal(describeElement(ports, { key }), 'ports 10.96.0.1 . udp . 53');
  const verdicts: NftSet = { ...ports, name: 'v', data: 'verdict' };
  const verdict = { kind: 'goto', chain: 'c' } as const;
  assert.equal(describeElement(verdicts, { key, verdict }), 'v 10.96.0.1 . udp . 53 : goto c');
});

test('ranges of several fields are described by two keys, ranges of one field as two elements', () => {
  const keyEnd = Uint8Array.of(10, 96, 0, 255, 17, 0, 0, 0, 0, 53, 0, 0);
  assert.equal(describeKey(ports, { key, keyEnd }), 'ports 10.96.0.1-10.96.0.255 . udp . 53');
  const ranges = { name: 'ranges', key: [types.ipv4Addr] };
  const end = { key: Uint8Array.of(10, 97, 0, 0), intervalEnd: true };
  assert.equal(describeKey(ranges, end), 'ranges before 10.97.0.0');
});

test('an element of a set with another key length is described without failing', () => {
  const other = { key: Uint8Array.of(10), data: new Uint8Array() };
  assert.equal(describeElement(ports, other), 'ports 10.0.0.0 . 0 . 0 : 0');
});
