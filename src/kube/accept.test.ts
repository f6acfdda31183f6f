import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acceptHeader } from './accept.ts';

const protobuf = 'application/vnd.kubernetes.protobuf';

test('the Accept header has only types that the client can read', () => {
  const cases: [accept: string, contentType: string, header: string, unreadable: string[]][] = [
    ['', 'application/json', 'application/json, */*', []],
    ['', protobuf, `${protobuf}, */*`, []],
    [`${protobuf},application/json`, protobuf, `${protobuf}, application/json`, []],
    ['application/json;as=Table, text/plain', 'x', 'application/json;as=Table', ['text/plain']],
    ['', 'application/cbor', 'application/json, */*', ['application/cbor']],
    ['*/*', '', 'application/json, */*', []],
    [protobuf, protobuf, protobuf, []],
    [' , ', '', 'application/json', []],
  ];
  for (const [accept, contentType, header, unreadable] of cases) {
    assert.deepEqual(acceptHeader({ accept, contentType }), { header, unreadable });
  }
});
