import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { type FakeEnd, FakePrograms } from '../../../test/iptables/fake-programs.ts';
import { CommandError } from '../../kernel/iptables/command-error.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { silentLogger } from '../../obs/log.ts';
import { KernelTables } from './kernel-tables.ts';
import { RestoreError } from './tables.ts';
import { WrittenRules } from './written-rules.ts';

function tablesWith(answer: FakePrograms | ((command: string) => FakeEnd | undefined)) {
  const programs = answer instanceof FakePrograms ? answer : new FakePrograms(answer);
  const commands = new Commands({
    family: 'IPv4',
    run: programs.run,
    clock: new FakeClock(),
    logger: silentLogger,
  });
  return new KernelTables({
    commands,
    written: new WrittenRules(),
    counters: undefined,
    logger: silentLogger,
    flavour: 'nft',
  });
}

/** What versions of iptables-restore say about a line, and the status they end with. */
const refusals: readonly [status: number, text: string, line: number | undefined][] = [
  [1, 'iptables-restore: line 3 failed\n', 3],
  [2, "iptables-restore v1.8.9 (legacy): Couldn't load match `x'\n\nError occurred at line: 7\nTry -h\n", 7],
  [4, 'iptables-restore v1.8.9 (nf_tables): \nline 12: CHAIN_DEL failed (Device or resource busy)\n', 12],
  [1, 'iptables-restore: no idea\n', undefined],
];

for (const [status, text, line] of refusals) {
  test(`a refusal is told with its line: ${JSON.stringify(text)}`, async () => {
    await assert.rejects(tablesWith(() => ({ status, text })).restore(['*nat\nCOMMIT\n']), (error) => {
      assert.ok(error instanceof RestoreError);
      assert.equal(error.line, line);
      assert.ok(error.message.includes(text.trim()));
      return true;
    });
  });
}

test('a lock that was not to be had is no judgement', async () => {
  const text = 'Another app is currently holding the xtables lock. Stopped waiting after 5s.\n';
  await assert.rejects(tablesWith(() => ({ status: 4, text })).restore([]), CommandError);
  await assert.rejects(tablesWith(() => ({ missing: true })).restore([]), /is not installed/);
});

test('the chains that nat had are reported, whoever made them', async () => {
  const lines = [
    '# Generated',
    '*nat',
    ':PREROUTING ACCEPT [1:60]',
    ':KUBE-X - [0:0]',
    '-A KUBE-X -j ACCEPT',
    'COMMIT',
  ];
  const tables = tablesWith((command) => (command.startsWith('iptables-save') ? { lines } : undefined));
  assert.deepEqual([...(await tables.ensureJumps())], ['PREROUTING', 'KUBE-X']);
});

const rules = '*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT\n';
const jumpLine = /^-I OUTPUT .*-j KUBE-SERVICES$/m;

test('missing jumps are made by the restore that writes the rules', async () => {
  const programs = new FakePrograms();
  const tables = tablesWith(programs);
  await tables.ensureJumps();
  await tables.restore([rules]);
  await tables.restore([rules]);
  const [listing, first, second, ...others] = programs.started;
  assert.equal(listing?.command, 'iptables-save');
  assert.match(first?.input ?? '', jumpLine);
  assert.ok(first?.input.endsWith(rules));
  assert.deepEqual([second?.input, others], [rules, []], 'jumps are made once');
});

test('when jumps and rules are refused together, each is written alone', async () => {
  const bad = '*nat\n-A KUBE-SERVICES -j BAD\nCOMMIT\n';
  const programs = new FakePrograms((_command, input) =>
    input.includes('BAD') ? { status: 2, text: 'iptables-restore: line 2 failed\n' } : undefined,
  );
  const tables = tablesWith(programs);
  await tables.ensureJumps();
  await assert.rejects(tables.restore([bad]), (error) => error instanceof RestoreError && error.line === 2);
  const inputs = programs.started.map(({ input }) => [jumpLine.test(input), input.includes('BAD')]);
  assert.deepEqual(inputs, [
    [false, false],
    [true, true],
    [false, false],
    [true, false],
    [false, true],
  ]);
});

test('after a restore of jumps that found the lock taken, the jumps are looked for again', async () => {
  const text = 'Another app is currently holding the xtables lock. Stopped waiting after 5s.\n';
  let isBusy = true;
  const programs = new FakePrograms((command) =>
    isBusy && command.startsWith('iptables-restore') ? { status: 4, text } : undefined,
  );
  const tables = tablesWith(programs);
  await tables.ensureJumps();
  await assert.rejects(tables.restore([rules]), CommandError);
  isBusy = false;
  await tables.restore([rules]);
  const programNames = programs.commands.map((command) => command.split(' ', 1)[0]);
  const [save, restore] = ['iptables-save', 'iptables-restore'];
  assert.deepEqual(programNames, [save, restore, save, restore, restore]);
  assert.equal(programs.started.at(-1)?.input, rules);
});

test('a kernel without counters is done without', async () => {
  const counters = await tablesWith(() => undefined).ensureCounters();
  assert.deepEqual(counters, { invalidDropped: false, localhostAccepted: false });
});
