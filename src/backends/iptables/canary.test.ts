import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { type FakeEnd, FakePrograms } from '../../../test/iptables/fake-programs.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { silentLogger } from '../../obs/log.ts';
import { Canary } from './canary.ts';

/** Tables that hold the chain, and what befalls commands about it. */
function fixture() {
  const present = new Set<string>();
  const planted: string[] = [];
  const errors: string[] = [];
  let fault: ((command: string) => FakeEnd | undefined) | undefined;
  let lost = 0;
  const programs = new FakePrograms((command, input) => {
    const end = fault?.(command);
    if (end) return end;
    const [, table] = / -S KUBE-PROXY-CANARY -t (\w+)/.exec(command) ?? [];
    if (table !== undefined) return { status: present.has(table) ? 0 : 1 };
    for (const [, made = ''] of input.matchAll(/^\*(\w+)\n:KUBE-PROXY-CANARY - \[0:0\]\nCOMMIT$/gm))
      present.add(made);
    return { status: 0 };
  });
  const clock = new FakeClock();
  const logger = { ...silentLogger, error: (_: unknown, message: string) => void errors.push(message) };
  const commands = new Commands({ family: 'IPv4', run: programs.run, clock, logger });
  const canary = new Canary({
    commands,
    clock,
    logger,
    interval: 30_000,
    onPlanted: (table) => void planted.push(table),
    onLost: () => void lost++,
  });
  return {
    present,
    planted,
    errors,
    programs,
    clock,
    canary,
    fail: (how: typeof fault) => {
      fault = how;
    },
    get lost() {
      return lost;
    },
  };
}

test('the canary is planted in three tables by one program, and checked in one of them', async () => {
  const f = fixture();
  f.canary.start();
  await f.clock.advance(0);
  assert.deepEqual(f.planted, ['mangle', 'nat', 'filter']);
  await f.clock.advance(90_000);
  assert.deepEqual(
    f.programs.commands.slice(1),
    Array(3).fill('iptables -w 5 -S KUBE-PROXY-CANARY -t mangle'),
  );
  assert.equal(f.lost, 0);
  await f.canary.close();
  assert.equal(f.clock.pending, 0);
});

test('a lost canary is reported and planted again', async () => {
  const f = fixture();
  f.canary.start();
  await f.clock.advance(0);
  f.present.clear();
  await f.clock.advance(30_000);
  assert.equal(f.lost, 1);
  assert.deepEqual([...f.present], ['mangle', 'nat', 'filter']);
  assert.deepEqual(f.errors, []);
  await f.canary.close();
});

test('a flush under way is waited for', async () => {
  const f = fixture();
  f.canary.start();
  await f.clock.advance(0);
  f.present.delete('mangle');
  f.present.delete('nat');
  await f.clock.advance(30_500);
  assert.equal(f.lost, 0);
  f.present.delete('filter');
  await f.clock.advance(200);
  assert.equal(f.lost, 1);
  await f.canary.close();
});

test('a flush of some tables only is reported after five seconds, with an error in the log', async () => {
  const f = fixture();
  f.canary.start();
  await f.clock.advance(0);
  f.present.delete('mangle');
  await f.clock.advance(35_200);
  assert.equal(f.lost, 1);
  assert.deepEqual(f.errors, ['Inconsistent iptables state detected']);
  await f.canary.close();
});

test('a lock that another program holds does not count as a lost canary', async () => {
  const f = fixture();
  f.canary.start();
  await f.clock.advance(0);
  f.fail((command) => (command.includes(' -S ') ? { status: 4 } : undefined));
  await f.clock.advance(65_000);
  assert.equal(f.lost, 0);
  assert.ok(f.errors.length > 0);
  await f.canary.close();
});

test('a canary that cannot be planted is tried again after the interval', async () => {
  const f = fixture();
  f.fail(() => ({ status: 3, text: 'no' }));
  f.canary.start();
  await f.clock.advance(1_000);
  assert.deepEqual(f.planted, []);
  f.fail(undefined);
  await f.clock.advance(30_000);
  assert.deepEqual(f.planted, ['mangle', 'nat', 'filter']);
  await f.canary.close();
});
