import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acceptHeader } from './accept.ts';

const protobuf = 'application/vnd.kubernetes.protobuf';

test('the Accept header has only types that the client can read', () => {
  const cases: [accept: string, contentType: string, header: string, dropped: string[]][] = [
    ['', 'application/json', 'application/json, */*', []],
    ['', protobuf, 'application/json, */*', [protobuf]],
    [`${protobuf},application/json`, protobuf, 'application/json', [protobuf]],
    ['application/json;as=Table, text/plain', 'x', 'application/json;as=Table', ['text/plain']],
    ['*/*', '', 'application/json, */*', []],
    [protobuf, protobuf, 'application/json', [protobuf]],
    [' , ', '', 'application/json', []],
  ];
  for (const [accept, contentType, header, dropped] of cases) {
    assert.deepEqual(acceptHeader({ accept, contentType }), { header, dropped });
  }
});
