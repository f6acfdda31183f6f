import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConnectionLog, type ForwardedConnection } from './connection-log.ts';
import { encodeAddress } from './socket-address.ts';

const client = encodeAddress({ ip: '10.0.0.1', port: 40_000 });
const first: ForwardedConnection = { service: 'web', client: '10.0.0.1:40000', endpoint: '10.1.0.1:80' };
const open = () => [first];

test('the first report has all open connections, later ones those since the last', () => {
  const log = new ConnectionLog();
  log.add('web', client, '10.1.0.9:80');
  assert.deepEqual(log.take(open), { startsOver: true, connections: [first] });
  assert.deepEqual(log.take(open), { startsOver: false, connections: [] });
  log.add('web', encodeAddress({ ip: 'fd00::1', port: 53 }), '[fd00::2]:53');
  assert.deepEqual(log.take(open), {
    startsOver: false,
    connections: [{ service: 'web', client: '[fd00::1]:53', endpoint: '[fd00::2]:53' }],
  });
});

test('recording ends when nobody asks, or when there is too much, and starts over with the next question', () => {
  const log = new ConnectionLog();
  log.take(open);
  log.prune();
  assert.equal(log.take(open).startsOver, false, 'somebody asked before');
  log.prune();
  log.prune();
  assert.equal(log.take(open).startsOver, true);
  for (let i = 0; i <= 50_000; i++) log.add('web', client, '10.1.0.9:80');
  assert.deepEqual(log.take(open), { startsOver: true, connections: [first] });
});
