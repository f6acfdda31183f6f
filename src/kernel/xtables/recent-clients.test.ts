import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toIP } from '../../model/ip.ts';
import { tickRate } from '../../native/tick-rate.ts';
import { recentClients } from './recent-clients.ts';

const lists: Readonly<Record<string, string>> = {
  '/proc/net/xt_recent/KUBE-SEP-A': `src=10.0.0.1 ttl: 64 last_seen: ${2 ** 32 + 250 * 700} oldest_pkt: 1 4295412345
src=fd00:0244:0001:0000:0000:0000:0000:0005 ttl: 64 last_seen: ${2 ** 32 - 250 * 100} oldest_pkt: 3 1, 2, 3
`,
};
const files = {
  read(path: string): string {
    const text = lists[path];
    if (text === undefined) throw new Error('ENOENT');
    return text;
  },
};

test('the time since a client was seen is counted in ticks since 300 s before the boot', () => {
  const recent = recentClients(files, 250, () => 1_012.5);
  assert.equal(recent.secondsSince('KUBE-SEP-A', toIP('10.0.0.1')), 12.5);
  assert.equal(recent.secondsSince('KUBE-SEP-A', toIP('fd00:244:1::5')), 812.5);
});

test('a client that is in no list, or in a list that is not there, was not seen', () => {
  const recent = recentClients(files, 250, () => 1_012.5);
  assert.equal(recent.secondsSince('KUBE-SEP-A', toIP('10.0.0.2')), undefined);
  assert.equal(recent.secondsSince('KUBE-SEP-B', toIP('10.0.0.1')), undefined);
  assert.equal(recent.secondsSince('../../x', toIP('10.0.0.1')), undefined);
});

test('a list has every client that it remembers', () => {
  const recent = recentClients(files, 250, () => 1_012.5);
  assert.deepEqual(recent.list('KUBE-SEP-A'), [
    { address: '10.0.0.1', secondsSince: 12.5 },
    { address: 'fd00:244:1::5', secondsSince: 812.5 },
  ]);
  assert.deepEqual(recent.list('KUBE-SEP-B'), []);
});

test('the tick rate is one that kernels have', { skip: process.platform !== 'linux' }, async () => {
  const rate = await tickRate();
  assert.ok(rate >= 24 && rate <= 1200, String(rate));
});
