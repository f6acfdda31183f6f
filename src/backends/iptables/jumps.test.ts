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

/** What `iptables-save` prints of tables that hold these jumps and the chains they lead to. */
function saved(command: string, held: typeof jumps): readonly string[] {
  if (!command.startsWith('iptables-save')) return [];
  return ['filter', 'nat'].flatMap((table) => {
    const ofTable = held.filter((jump) => jump.table === table);
    const chains = new Set(ofTable.flatMap(({ from, to }) => [from, to]));
    return [
      `*${table}`,
      ...[...chains].map((chain) => `:${chain} - [0:0]`),
      ...ofTable.map(savedRule),
      'COMMIT',
    ];
  });
}

test('when all jumps are there, one listing is all it takes', async () => {
  const { programs, commands } = commandsWith((command) => ({ lines: saved(command, jumps) }));
  await ensureJumps(commands, jumpStructure);
  assert.deepEqual(programs.commands, ['iptables-save']);
});

test('on a clean host everything comes in one go, each jump in front of those before it', async () => {
  const { programs, commands } = commandsWith(() => undefined);
  await ensureJumps(commands, jumpStructure);
  assert.equal(programs.commands.length, 2);
  const restored = programs.started.at(-1)?.input.split('\n') ?? [];
  assert.deepEqual(restored.slice(0, 9), [
    '*filter',
    ':KUBE-EXTERNAL-SERVICES - [0:0]',
    ':KUBE-NODEPORTS - [0:0]',
    ':KUBE-SERVICES - [0:0]',
    ':KUBE-FORWARD - [0:0]',
    ':KUBE-PROXY-FIREWALL - [0:0]',
    '-N KUBE-FIREWALL',
    '-I INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES',
    '-I FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES',
  ]);
  assert.equal(restored.filter((line) => line.startsWith('-I ')).length, 14);
  assert.equal(restored.filter((line) => line === 'COMMIT').length, 2);
});

test('a chain that is there is not declared again, which would empty it', async () => {
  const kept = jumps.filter(({ from }) => from !== 'PREROUTING');
  const { programs, commands } = commandsWith((command) => ({
    lines: saved(command, kept),
  }));
  await ensureJumps(commands, jumpStructure);
  assert.equal(
    programs.started.at(-1)?.input,
    '*nat\n-I PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\nCOMMIT\n',
  );
});

test('the chain that the kubelet uses is never emptied, even when it makes it at the same time', async () => {
  const exists = { status: 1, text: 'iptables: Chain already exists.' };
  const { programs, commands } = commandsWith((command) =>
    command.includes('restore') || command.includes(' -N KUBE-FIREWALL ') ? exists : undefined,
  );
  const { errors } = await ensureJumps(commands, jumpStructure);
  assert.deepEqual(errors, []);
  assert.ok(programs.commands.includes('iptables -w 5 -N KUBE-FIREWALL -t filter'));
  assert.ok(programs.commands.includes('iptables -w 5 -I OUTPUT -t filter -j KUBE-FIREWALL'));
  const inputs = programs.started.map(({ input }) => input).join('');
  assert.ok(!inputs.includes(':KUBE-FIREWALL'));
});

test('a rule in other words is not added again when the program knows it', async () => {
  const { programs, commands } = commandsWith((command) => ({
    lines: saved(command, jumps).map((rule) => rule.replace('-m conntrack', '-m state')),
  }));
  await ensureJumps(commands, jumpStructure);
  assert.ok(programs.commands.some((command) => command.includes(' -C ')));
  assert.ok(!programs.commands.some((command) => command.includes('restore')));
});
