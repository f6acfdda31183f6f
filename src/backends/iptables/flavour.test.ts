import assert from 'node:assert/strict';
import { test } from 'node:test';
import { world } from '../../../test/iptables/fake-world.ts';
import { flavourOf } from '../../kernel/iptables/table-reader.ts';
import { warnOfMix } from './flavour.ts';

const legacyTables = { '/proc/net/ip_tables_names': 'nat\nfilter\n' };

test('the version tells the flavour of iptables', () => {
  assert.equal(flavourOf('iptables v1.8.9 (nf_tables)'), 'nft');
  assert.equal(flavourOf('iptables v1.8.9 (legacy)'), 'legacy');
  assert.equal(flavourOf('iptables v1.6.2'), 'legacy');
});

test('a warning names the flavour that is not in use and holds our rules', async () => {
  const context = world(
    () => ({ lines: [':KUBE-SERVICES - [0:0]', ':KUBE-SVC-A - [0:0]', ':KUBE-KUBELET-CANARY - [0:0]'] }),
    legacyTables,
  );
  await warnOfMix('nft', context);
  assert.equal(context.log.length, 1);
  assert.match(context.log[0]?.message ?? '', /Both kinds of iptables/);
  assert.deepEqual(context.log[0]?.attributes, {
    inUse: 'nft',
    alsoFound: 'legacy',
    IPv4: 'KUBE-SERVICES, KUBE-SVC-A',
  });
  assert.deepEqual(context.programs.commands, ['iptables-legacy-save']);
});

test('a flavour without tables is not asked, and the chains of the kubelet cause no warning', async () => {
  const untouched = world(() => ({ lines: [':KUBE-SERVICES - [0:0]'] }), {});
  await warnOfMix('nft', untouched);
  assert.deepEqual([untouched.log, untouched.programs.commands], [[], []]);
  const kubelet = world(() => ({ lines: [':KUBE-KUBELET-CANARY - [0:0]', ':KUBE-IPTABLES-HINT - [0:0]'] }));
  await warnOfMix('legacy', kubelet);
  assert.deepEqual(kubelet.log, []);
  assert.equal(kubelet.programs.commands.length, 2);
});
