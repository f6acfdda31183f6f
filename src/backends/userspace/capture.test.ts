import assert from 'node:assert/strict';
import { test } from 'node:test';
import { obstacleText } from './capture.ts';

/** With or without CAP_NET_ADMIN, the thirteenth capability. */
function status(has: boolean) {
  return { read: () => `Name:\tnode\nCapEff:\t000000000000${has ? '1' : '0'}000\n` };
}

test('a missing privilege is told as what is missing', () => {
  const refused = new Error('check: EPERM');
  assert.equal(obstacleText(refused, false, status(false)), 'not running as root (CAP_NET_ADMIN is needed)');
  assert.equal(obstacleText(refused, true, status(false)), 'CAP_NET_ADMIN is missing');
});

test("everything else is told in the kernel's words, also a refusal that has another cause", () => {
  for (const text of ['check: EPERM', 'socket: EPROTONOSUPPORT', 'check: add chain: ENOENT', 'EOPNOTSUPP']) {
    assert.equal(obstacleText(new Error(text), true, status(true)), `nftables: ${text}`);
  }
  assert.equal(obstacleText('no such thing', false, status(false)), 'nftables: no such thing');
});
