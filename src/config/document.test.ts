import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configFields } from './document.ts';

test('every field is described, with the default of an empty file', () => {
  const fields = configFields();
  const find = (path: string) => fields.find((field) => field.path === path);
  assert.equal(new Set(fields.map(({ path }) => path)).size, fields.length);
  assert.ok(fields.every(({ about }) => about.endsWith('.')));
  assert.partialDeepStrictEqual(find('iptables.masqueradeBit'), { type: 'int32, nullable', default: '14' });
  assert.partialDeepStrictEqual(find('conntrack.tcpEstablishedTimeout'), { default: '24h0m0s' });
  assert.partialDeepStrictEqual(find('logging.vmodule[].filePattern'), {
    type: 'string',
    default: undefined,
  });
  assert.partialDeepStrictEqual(find('nodePortAddresses'), { type: 'list of string', default: 'null' });
  assert.partialDeepStrictEqual(find('mode'), { default: '""' });
});
