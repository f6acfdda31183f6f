import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSuccess, renderScenarios } from './play.ts';

const played = [
  { name: 'drain', load: { connections: 900, slowestMs: 31, failures: [] } },
  { name: 'migration', load: { connections: 800, slowestMs: 10_001, failures: ['12:00 no answer'] } },
  { name: 'least-privilege', obstacle: 'the overlay is for nftables mode' },
  { name: 'kubelet-restart', error: 'kubectl: ended with 1' },
  {
    name: 'rolling-update',
    load: { connections: 700, slowestMs: 9, failures: [] },
    error: 'afterwards: no answer',
  },
];

test('a scenario with a failed connection, or one that broke off, is no success', () => {
  assert.deepEqual(played.map(isSuccess), [true, false, true, false, false]);
});

test('the table of scenarios has figures, obstacles and the first failures', () => {
  assert.equal(
    renderScenarios(played, 'ours-iptables'),
    `| scenario, ours-iptables | connections | failed | slowest |
|---|---|---|---|
| drain | 900 | 0 | 31 ms |
| migration | 800 | 1 | 10001 ms |
| least-privilege | not played: the overlay is for nftables mode |  |  |
| kubelet-restart | broke off |  |  |
| rolling-update | 700, broke off | 0 | 9 ms |

migration: 12:00 no answer
kubelet-restart: kubectl: ended with 1
rolling-update: afterwards: no answer`,
  );
});
