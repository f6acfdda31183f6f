import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { type FakeEnd, FakePrograms } from '../../../test/iptables/fake-programs.ts';
import { silentLogger } from '../../obs/log.ts';
import { CommandError, MissingProgramError } from './command-error.ts';
import { Commands } from './commands.ts';

function commandsWith(answer: (command: string) => FakeEnd | undefined, family: 'IPv4' | 'IPv6' = 'IPv4') {
  const programs = new FakePrograms(answer);
  const clock = new FakeClock();
  const log: string[] = [];
  const observer = {
    writerStarted: (pid: number) => void log.push(`started ${pid}`),
    writerEnded: () => void log.push('ended'),
  };
  const logger = { ...silentLogger, info: (message: string) => void log.push(message) };
  const commands = new Commands({ family, run: programs.run, clock, logger, observer });
  return { programs, clock, log, commands };
}

test('every method runs its iptables command line', async () => {
  const { commands, programs } = commandsWith(() => undefined);
  const rule = ['-m', 'comment', '--comment', 'two words', '-j', 'KUBE-X'];
  await commands.createChain('nat', 'KUBE-X');
  await commands.ruleExists('nat', 'INPUT', rule);
  await commands.insertRule('nat', 'INPUT', rule);
  await commands.chainExists('mangle', 'KUBE-X');
  await commands.save('nat', () => {});
  await commands.restore(['*nat\n', 'COMMIT\n']);
  await commands.restore(['*nat\n', 'COMMIT\n'], 'nat');
  await commands.save('all', () => {});
  await commands.createEmptyChain(['mangle', 'nat'], 'KUBE-X');
  const text = '-t nat -m comment --comment two words -j KUBE-X';
  assert.deepEqual(programs.commands, [
    'iptables -w 5 -N KUBE-X -t nat',
    `iptables -w 5 -C INPUT ${text}`,
    `iptables -w 5 -I INPUT ${text}`,
    'iptables -w 5 -S KUBE-X -t mangle',
    'iptables-save -t nat',
    'iptables-restore -w 5 --noflush --counters',
    'iptables-restore -w 5 --noflush --counters -T nat',
    'iptables-save',
    'iptables-restore -w 5 --noflush --counters',
  ]);
  assert.equal(programs.started.at(-3)?.input, '*nat\nCOMMIT\n');
  assert.equal(
    programs.started.at(-1)?.input,
    '*mangle\n:KUBE-X - [0:0]\nCOMMIT\n*nat\n:KUBE-X - [0:0]\nCOMMIT\n',
  );
});

test('IPv6 and the variants use their own programs', () => {
  const { run } = new FakePrograms();
  const options = { run, clock: new FakeClock(), logger: silentLogger };
  assert.equal(new Commands({ ...options, family: 'IPv6' }).program('restore'), 'ip6tables-restore');
  assert.equal(
    new Commands({ ...options, family: 'IPv4', variant: 'legacy' }).program('save'),
    'iptables-legacy-save',
  );
});

test('the exit status of a query is its answer', async () => {
  for (const [status, answer] of [
    [0, true],
    [1, false],
  ] as const) {
    const { commands } = commandsWith(() => ({ status }));
    assert.equal(await commands.createChain('nat', 'KUBE-X'), answer);
    assert.equal(await commands.chainExists('nat', 'KUBE-X'), answer);
    assert.equal(await commands.ruleExists('nat', 'INPUT', ['-j', 'KUBE-X']), answer);
  }
});

test('any other exit status is an error with command, status and output', async () => {
  const { commands } = commandsWith(() => ({ status: 2, text: 'Bad argument\n' }));
  const message = 'iptables -w 5 -N KUBE-X -t nat: exit status 2: Bad argument';
  await assert.rejects(commands.createChain('nat', 'KUBE-X'), { name: 'CommandError', message });
  await assert.rejects(
    commands.save('nat', () => {}),
    /^CommandError: iptables-save -t nat: exit status 2/,
  );
  await assert.rejects(commands.restore([]), /^CommandError: iptables-restore .*: exit status 2/);
});

test('a rule listing contains only -A lines', async () => {
  const lines = ['# Warning: iptables-legacy tables present', '-P INPUT ACCEPT', '-A INPUT -j KUBE-X'];
  const { commands } = commandsWith(() => ({ lines }));
  assert.deepEqual(await commands.rules('filter', 'INPUT'), ['-A INPUT -j KUBE-X']);
});

test('a busy iptables lock is retried and logged', async () => {
  let attempts = 0;
  const { commands, clock, log, programs } = commandsWith(() => (++attempts < 3 ? { status: 4 } : undefined));
  const created = commands.createChain('nat', 'KUBE-X');
  await clock.advance(1_000);
  assert.equal(await created, true);
  assert.equal(programs.started.length, 3);
  assert.equal(log.filter((line) => line.includes('busy')).length, 2);
  assert.equal(clock.pending, 0);
});

test('a lock that stays busy is an error; restore input is written only once', async () => {
  const { commands, clock, programs } = commandsWith(() => ({ status: 4, text: 'xtables lock' }));
  const created = commands.createChain('nat', 'KUBE-X');
  const refused = assert.rejects(
    created,
    (error) => error instanceof CommandError && error.isResourceProblem,
  );
  await clock.advance(10_000);
  await refused;
  assert.equal(programs.started.length, 3);
  await assert.rejects(commands.restore(['*nat\n']), (error) => error instanceof CommandError);
  assert.equal(programs.started.length, 4);
});

test('a chain in use fails a command at once and is not mistaken for a busy lock', async () => {
  for (const end of [
    { status: 1, text: 'iptables: Too many links.' },
    { status: 4, text: 'iptables v1.8.9 (nf_tables):  CHAIN_DEL failed (Device or resource busy): chain X' },
  ]) {
    const { commands, programs } = commandsWith(() => end);
    await assert.rejects(
      commands.insertRule('nat', 'INPUT', []),
      (error) => error instanceof CommandError && error.isInUse && !error.isResourceProblem,
    );
    assert.equal(programs.started.length, 1);
  }
});

test('the observer learns of programs that write, not of those that read', async () => {
  const { commands, log } = commandsWith(() => undefined);
  await commands.chainExists('nat', 'KUBE-X');
  await commands.save('nat', () => {});
  assert.deepEqual(log, []);
  await commands.restore([]);
  await commands.createChain('nat', 'KUBE-X');
  assert.deepEqual(log, ['started 101', 'ended', 'started 102', 'ended']);
});

test('the error for a missing program names it', async () => {
  const { commands } = commandsWith(() => ({ missing: true }), 'IPv6');
  await assert.rejects(commands.version(), (error) => {
    assert.ok(error instanceof MissingProgramError);
    assert.match(error.message, /^ip6tables is not installed/);
    return true;
  });
});

test('the error of a program that hung or was killed says so', () => {
  const message = (end: object) =>
    new CommandError('iptables', ['-C'], { status: undefined, timedOut: false, output: '', ...end }).message;
  assert.equal(message({ timedOut: true }), 'iptables -C: took too long and was killed');
  assert.equal(message({ signal: 'SIGSEGV' }), 'iptables -C: ended by SIGSEGV');
});
