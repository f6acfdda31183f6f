import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { encodeMessage } from './encode.ts';
import { encodeContent, encodeList, encodeObject, encodeWatchFrame } from './envelope.ts';
import type { Message } from './messages.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('a message', () => {
  const inner: Message = { flag: { number: 1, type: 'boolean', written: 'present' } };
  const cases: [name: string, message: Message, object: object, bytes: string][] = [
    ['a text', { a: { number: 1, type: 'string', written: 'present' } }, { a: 'hé' }, '0a0368c3a9'],
    ['a number', { a: { number: 2, type: 'integer', written: 'present' } }, { a: 300 }, '10ac02'],
    [
      'a negative number',
      { a: { number: 2, type: 'integer', written: 'present' } },
      { a: -1 },
      '10ffffffffffffffffff01',
    ],
    ['an absent field', { a: { number: 1, type: 'string', written: 'present' } }, {}, ''],
    [
      'an empty field that cannot be absent',
      { a: { number: 1, type: 'string', written: 'always' } },
      {},
      '0a00',
    ],
    [
      'a field above 15',
      { a: { number: 17, type: inner, written: 'present' } },
      { a: { flag: true } },
      '8a01020801',
    ],
    ['an array', { a: { number: 1, type: 'string', written: 'each' } }, { a: ['x', 'y'] }, '0a01780a0179'],
    [
      'a map, in order of its keys',
      { a: { number: 1, type: 'string', written: 'map' } },
      { a: { b: '2', a: '1' } },
      '0a060a01611201310a060a0162120132',
    ],
    [
      'a time',
      { a: { number: 1, type: 'time', written: 'present' } },
      { a: '1970-01-01T00:00:05Z' },
      '0a0408051000',
    ],
    [
      'a number as port',
      { a: { number: 4, type: 'intOrString', written: 'always' } },
      { a: 80 },
      '2206080010501a00',
    ],
    [
      'a name as port',
      { a: { number: 4, type: 'intOrString', written: 'always' } },
      { a: 'x' },
      '2207080110001a0178',
    ],
  ];
  for (const [name, message, object, bytes] of cases) {
    test(`holds ${name}`, () => assert.equal(hex(encodeMessage(message, object)), bytes));
  }
});

test('an object has its type around it', () => {
  const type = { apiVersion: 'v1', kind: 'Service' };
  assert.equal(
    hex(encodeObject(type, Buffer.from('0a00', 'hex'))),
    '6b387300' + '0a0d' + '0a027631' + '120753657276696365' + '12020a00' + '1a002200',
  );
});

test('a list has its version before its items', () => {
  const type = { apiVersion: 'v1', kind: 'A' };
  assert.equal(
    hex(encodeList(type, { resourceVersion: '7' }, [Buffer.from('0a00', 'hex')])),
    '6b387300' +
      '0a07' +
      '0a027631' +
      '120141' +
      '120d' +
      '0a07' +
      '0a00' +
      '120137' +
      '1a00' +
      '12020a00' +
      '1a002200',
  );
});

test('an event begins with its length', () => {
  assert.equal(
    hex(encodeWatchFrame('ADDED', Buffer.from('k8s\0'))),
    '0000000f0a054144444544' + '12060a046b387300',
  );
});

test('a field of a wrong type is written as what it is', () => {
  const good = encodeContent('Service', { spec: {} });
  const bad = encodeContent('Service', { spec: 5 });
  assert.ok(good.includes(Buffer.from('12', 'hex')));
  assert.equal(hex(bad.subarray(-6)), '10051a020a00');
});
