import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENOENT, type Sockets } from '../native/sockets.ts';
import { isOtherHost, isSourceKept, keepsSource } from './client-source.ts';
import { encodeAddress } from './socket-address.ts';

const all = { of: '0.0.0.0/0' };

function isOther(client: string, endpoint: string): boolean {
  return isOtherHost(encodeAddress({ ip: client, port: 40_000 }), encodeAddress({ ip: endpoint, port: 80 }));
}

test('an endpoint can see the address of a client that is another host', () => {
  assert.equal(isOther('10.244.1.2', '10.244.1.3'), true);
  assert.equal(isOther('fd00::2', 'fd00::3'), true);
});

test('an endpoint that is the client itself, or that is of the other family, sees the node', () => {
  assert.equal(isOther('10.244.1.2', '10.244.1.2'), false);
  assert.equal(isOther('fd00::2', 'fd00::2'), false);
  assert.equal(isOther('10.244.1.2', 'fd00::3'), false);
});

test('the address of a client is kept in the network that the listener names', () => {
  const pods = { of: '10.244.0.0/16' };
  assert.equal(isSourceKept(pods, '10.244.3.2', undefined), true);
  assert.equal(isSourceKept(pods, '192.0.2.1', undefined), false);
  assert.equal(isSourceKept(all, '192.0.2.1', undefined), true);
  assert.equal(isSourceKept({ of: 'fd00::/16' }, 'fd00::2', undefined), true);
});

test('the address of a client is kept only at the address that the listener names', () => {
  const atClusterIP = { ...all, at: '10.96.0.1' };
  assert.equal(isSourceKept(atClusterIP, '10.244.3.2', '10.96.0.1'), true);
  assert.equal(isSourceKept(atClusterIP, '10.244.3.2', '192.0.2.10'), false);
  assert.equal(isSourceKept(atClusterIP, '10.244.3.2', undefined), false);
});

test('a link-local address is not kept', () => {
  assert.equal(isSourceKept({ of: '::/0' }, 'fe80::2', undefined), false);
});

test('the kernel is asked where a client connected to only if that decides, and otherwise the address is kept', () => {
  let asked = 0;
  const getOption = () => {
    asked++;
    return -ENOENT;
  };
  const sockets = { getOption } as Partial<Sockets> as Sockets;
  const unknown: number[] = [];
  const isKept = (ip: string) =>
    keepsSource(
      sockets,
      { of: '10.244.0.0/16', at: '10.96.0.1' },
      encodeAddress({ ip, port: 40_000 }),
      5,
      (errno) => unknown.push(errno),
    );
  assert.equal(isKept('192.0.2.1'), false);
  assert.equal(asked, 0);
  assert.equal(isKept('10.244.3.2'), true);
  assert.deepEqual([asked, unknown], [1, [ENOENT]]);
});
