import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunProgram } from '../../kernel/program.ts';
import { silentLogger } from '../../obs/log.ts';
import { removeOldChains } from './old-chains.ts';

const ended = (status: number, output = '') => ({ status, timedOut: false, output });

test('where nothing is left, nothing is written', async () => {
  const calls: string[] = [];
  const run: RunProgram = async (program, args) => {
    calls.push([program, ...args].join(' '));
    return ended(1, 'No chain by that name');
  };
  await removeOldChains(run, silentLogger);
  assert.equal(calls.length, 10);
  assert.ok(calls.every((call) => call.includes(' -S KUBE-')));
});

test('a node without iptables has nothing to clean up', async () => {
  const missing = Object.assign(new Error('spawn iptables ENOENT'), { code: 'ENOENT', syscall: 'spawn' });
  await removeOldChains(() => Promise.reject(missing), silentLogger);
});

test('a chain that is there and stays is an error that names it, and the others are tried', async () => {
  const removed: string[] = [];
  const run: RunProgram = async (_, args) => {
    const text = args.join(' ');
    if (text.includes(' -C ')) return ended(1);
    if (text.includes('-X KUBE-PORTALS-HOST')) return ended(1, 'CHAIN_DEL failed');
    if (text.includes('-X')) removed.push(text);
    return ended(0);
  };
  await assert.rejects(removeOldChains(run, silentLogger), /KUBE-PORTALS-HOST: CHAIN_DEL failed/);
  assert.equal(removed.length, 8);
});
