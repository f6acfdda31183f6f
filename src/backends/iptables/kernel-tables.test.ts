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

function tablesWith(answer: (command: string) => FakeEnd | undefined) {
  const programs = new FakePrograms(answer);
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

test('a kernel without counters is done without', async () => {
  const counters = await tablesWith(() => undefined).ensureCounters();
  assert.deepEqual(counters, { invalidDropped: false, localhostAccepted: false });
});
