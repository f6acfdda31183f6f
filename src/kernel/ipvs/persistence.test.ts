import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findPersistence, readPersistence } from './persistence.ts';

const table = `Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData
TCP 0A000001 9C40 0A600001 0050 0AF40116 1F90 ESTABLISHED     899
TCP 0A000001 0000 0A600001 0050 0AF40115 1F90 NONE          10799
UDP 0A000001 0000 0A600001 0050 0AF40116 1F90 NONE             60
TCP fd00:0244:0001:0000:0000:0000:0000:0005 0000 fd00:0096:0000:0000:0000:0000:0000:0001 0050 fd00:0244:0002:0000:0000:0000:0000:0021 1F90 NONE            599
`;
const call = { protocol: 'TCP', client: '10.0.0.1', address: '10.96.0.1', port: 80 } as const;

test('the template of a client names its real server and the time left', () => {
  const expected = { address: '10.244.1.21', port: 8080, secondsLeft: 10_799 };
  assert.deepEqual(findPersistence(table, call), expected);
  assert.equal(findPersistence(table, { ...call, protocol: 'UDP' })?.address, '10.244.1.22');
  assert.deepEqual(findPersistence(table, { ...call, client: 'fd00:244:1::5', address: 'fd00:96::1' }), {
    address: 'fd00:244:2::21',
    port: 8080,
    secondsLeft: 599,
  });
});

test('a connection is not a template, and other clients and servers have others', () => {
  assert.equal(findPersistence(table, { ...call, client: '10.0.0.2' }), undefined);
  assert.equal(findPersistence(table, { ...call, port: 81 }), undefined);
  assert.equal(findPersistence(table, { ...call, address: '10.96.0.2' }), undefined);
  const unreadable = {
    read: () => {
      throw new Error('ENOENT');
    },
  };
  assert.equal(readPersistence(unreadable, call), undefined);
});
