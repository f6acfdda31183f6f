import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import type { RunProgram } from '../../kernel/program.ts';
import { silentLogger } from '../../obs/log.ts';
import { removeOldChains } from './old-chains.ts';

const chains = [
  'KUBE-PORTALS-HOST',
  'KUBE-PORTALS-CONTAINER',
  'KUBE-NODEPORT-HOST',
  'KUBE-NODEPORT-CONTAINER',
  'KUBE-NODEPORT-NON-LOCAL',
];
const on = (run: RunProgram) => ({ run, clock: new FakeClock(), logger: silentLogger });
const ended = (status: number, output = '') => ({ status, timedOut: false, output });

test('where nothing is left, nothing is written', async () => {
  const calls: string[] = [];
  const run: RunProgram = async (program, args, { onLine }) => {
    calls.push([program, ...args].join(' '));
    onLine?.(':KUBE-SERVICES - [0:0]');
    return ended(0);
  };
  await removeOldChains(on(run));
  assert.deepEqual(calls, ['iptables-save', 'ip6tables-save']);
});

test('a node without iptables has nothing to clean up', async () => {
  const missing = Object.assign(new Error('spawn iptables ENOENT'), { code: 'ENOENT', syscall: 'spawn' });
  await removeOldChains(on(() => Promise.reject(missing)));
});

test('a chain that is there and stays is an error that names it, and the others are tried', async () => {
  const removed: string[] = [];
  const run: RunProgram = async (program, args, { onLine }) => {
    const text = args.join(' ');
    if (program.endsWith('-save')) for (const chain of chains) onLine?.(`:${chain} - [0:0]`);
    if (text.includes(' -C ')) return ended(1);
    if (text.includes('-X KUBE-PORTALS-HOST')) return ended(1, 'CHAIN_DEL failed');
    if (text.includes('-X')) removed.push(text);
    return ended(0);
  };
  await assert.rejects(removeOldChains(on(run)), /-X KUBE-PORTALS-HOST .*: CHAIN_DEL failed/);
  assert.equal(removed.length, 8);
});

test('a jump that was made several times goes before its chain, even when others hold the lock', async () => {
  const calls: string[] = [];
  let copies = 2;
  let refusals = 2;
  const run: RunProgram = async (program, args, { onLine }) => {
    const text = args.join(' ');
    if (program === 'iptables-save') onLine?.(':KUBE-PORTALS-HOST - [0:0]');
    if (program !== 'iptables') return ended(0);
    if (text.includes(' -C ')) return ended(copies > 0 ? 0 : 1);
    if (text.includes(' -D ') && refusals-- > 0) return ended(4, 'Another app is holding the xtables lock');
    if (text.includes(' -D ')) copies--;
    calls.push(args.slice(2, 4).join(' '));
    return ended(0);
  };
  const context = on(run);
  const removed = removeOldChains(context);
  await context.clock.advance(1_000);
  await removed;
  assert.deepEqual(calls, ['-F KUBE-PORTALS-HOST', '-D OUTPUT', '-D OUTPUT', '-X KUBE-PORTALS-HOST']);
});
