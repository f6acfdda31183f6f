import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { type FakeEnd, FakePrograms } from '../../../test/iptables/fake-programs.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { silentLogger } from '../../obs/log.ts';
import { ensureJumps, savedRule } from '../jumps.ts';
import { jumpStructure, jumps } from './jumps.ts';

function commandsWith(answer: (command: string) => FakeEnd | undefined) {
  const programs = new FakePrograms(answer);
  const commands = new Commands({
    family: 'IPv4',
    run: programs.run,
    clock: new FakeClock(),
    logger: silentLogger,
  });
  return { programs, commands };
}

/** What `-S` says of a chain that holds these jumps. */
function listed(command: string, held: typeof jumps): readonly string[] {
  const [, chain, table] = / -S (\S+) -t (\S+)/.exec(command) ?? [];
  return held.filter((jump) => jump.from === chain && jump.table === table).map(savedRule);
}

test('when all jumps are there, six questions are all it takes', async () => {
  const { programs, commands } = commandsWith((command) => ({ lines: listed(command, jumps) }));
  await ensureJumps(commands, jumpStructure);
  assert.equal(programs.started.length, 6);
  assert.ok(programs.commands.every((command) => command.includes(' -S ')));
});

test('on a clean host everything comes in one go, each jump in front of those before it', async () => {
  const { programs, commands } = commandsWith(() => undefined);
  await ensureJumps(commands, jumpStructure);
  assert.equal(programs.commands.filter((command) => command.includes('restore')).length, 1);
  const restored = programs.started.at(-1)?.input.split('\n') ?? [];
  assert.deepEqual(restored.slice(0, 8), [
    '*filter',
    ':KUBE-EXTERNAL-SERVICES - [0:0]',
    ':KUBE-NODEPORTS - [0:0]',
    ':KUBE-SERVICES - [0:0]',
    ':KUBE-FORWARD - [0:0]',
    ':KUBE-PROXY-FIREWALL - [0:0]',
    '-I INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES',
    '-I FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES',
  ]);
  assert.equal(restored.filter((line) => line.startsWith('-I ')).length, 14);
  assert.equal(restored.filter((line) => line === 'COMMIT').length, 2);
});

test('a chain that is there is not declared again, which would empty it', async () => {
  const kept = jumps.filter(({ from }) => from !== 'PREROUTING');
  const { programs, commands } = commandsWith((command) => ({
    lines: command.startsWith('iptables-save') ? [':KUBE-SERVICES - [0:0]'] : listed(command, kept),
  }));
  await ensureJumps(commands, jumpStructure);
  assert.equal(
    programs.started.at(-1)?.input,
    '*nat\n-I PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\nCOMMIT\n',
  );
});

test('the chain that the kubelet uses is never emptied, even when it makes it at the same time', async () => {
  const { programs, commands } = commandsWith((command) =>
    command.includes(' -N ') ? { status: 1, text: 'iptables: Chain already exists.' } : undefined,
  );
  await ensureJumps(commands, jumpStructure);
  const made = programs.commands.filter((command) => command.includes(' -N '));
  assert.deepEqual(made, ['iptables -w 5 -N KUBE-FIREWALL -t filter']);
  assert.ok(programs.commands.indexOf(made[0] ?? '') < programs.started.length - 1);
  const restored = programs.started.at(-1)?.input ?? '';
  assert.ok(!restored.includes(':KUBE-FIREWALL'));
  assert.ok(restored.includes('-I OUTPUT -j KUBE-FIREWALL\n'));
});

test('a rule in other words is not added again when the program knows it', async () => {
  const { programs, commands } = commandsWith((command) => ({
    lines: listed(command, jumps).map((rule) => rule.replace('-m conntrack', '-m state')),
  }));
  await ensureJumps(commands, jumpStructure);
  assert.ok(programs.commands.some((command) => command.includes(' -C ')));
  assert.ok(!programs.commands.some((command) => command.includes('restore')));
});
