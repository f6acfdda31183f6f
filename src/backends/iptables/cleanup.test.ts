import assert from 'node:assert/strict';
import { test } from 'node:test';
import { world } from '../../../test/iptables/fake-world.ts';
import { removeAll } from './cleanup.ts';

const legacyTables = { '/proc/net/ip_tables_names': 'nat\nfilter\n' };
const nft = (lines: readonly string[]) => (command: string) => {
  if (command.endsWith('--version')) return { lines: ['iptables v1.8.9 (nf_tables)'] };
  if (command.includes(' -C ')) return { status: 1 };
  return command.includes('-save') ? { lines } : undefined;
};
const chains = [
  ':PREROUTING ACCEPT [0:0]',
  ':KUBE-SVC-A - [0:0]',
  ':KUBE-SERVICES - [0:0]',
  ':KUBE-FIREWALL - [0:0]',
];

test('removes fixed chains before those of services, and what an old release left', async () => {
  const context = world(nft([...chains, ':KUBE-XLB-B - [0:0]', ':KUBE-MARK-DROP - [0:0]']));
  await removeAll(context);
  const restored = context.programs.started.filter(({ command }) => command.startsWith('iptables-restore'));
  assert.deepEqual(restored, [
    {
      command: 'iptables-restore -w 5 -T nat --noflush --counters',
      input:
        '*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC-A - [0:0]\n:KUBE-XLB-B - [0:0]\n' +
        '-X KUBE-SERVICES\n-X KUBE-SVC-A\n-X KUBE-XLB-B\nCOMMIT\n',
    },
    {
      command: 'iptables-restore -w 5 -T filter --noflush --counters',
      input: '*filter\n:KUBE-SERVICES - [0:0]\n-X KUBE-SERVICES\nCOMMIT\n',
    },
  ]);
  assert.ok(context.programs.commands.includes('iptables -w 5 -X KUBE-PROXY-CANARY -t mangle'));
  assert.ok(context.programs.commands.some((command) => command.startsWith('ip6tables-restore')));
});

test('where there is nothing, one look at each family tells', async () => {
  const context = world(nft([':PREROUTING ACCEPT [0:0]', ':KUBE-FIREWALL - [0:0]']));
  await removeAll(context);
  assert.deepEqual(context.programs.commands, [
    'iptables-save',
    'iptables --version',
    'ip6tables-save',
    'ip6tables --version',
  ]);
});

test('a machine without iptables has nothing to clean up', async () => {
  await removeAll(world(() => ({ missing: true })));
});

test('legacy tables that are not there are not made', async () => {
  const context = world((command) =>
    command.endsWith('--version') ? { lines: ['iptables v1.8.9 (legacy)'] } : undefined,
  );
  await removeAll(context);
  assert.ok(!context.programs.commands.some((command) => /^ip6?tables -w/.test(command)));
});

test('a step that fails does not keep the others from being made, and is the result', async () => {
  const context = world((command) =>
    command.includes('-T nat') ? { status: 4, text: 'CHAIN_DEL failed' } : nft(chains)(command),
  );
  await assert.rejects(removeAll(context), /CHAIN_DEL failed/);
  assert.equal(context.programs.commands.filter((command) => command.includes('-T filter')).length, 2);
  assert.equal(context.log.length, 2);
});

test('the other flavour is cleaned up too when it holds something of ours', async () => {
  const context = world(nft(chains), { ...legacyTables, '/proc/net/if_inet6': '' });
  await removeAll(context);
  assert.ok(context.programs.commands.includes('iptables-legacy-restore -w 5 -T nat --noflush --counters'));
  assert.ok(!context.programs.commands.some((command) => command.startsWith('ip6tables-legacy')));
});
