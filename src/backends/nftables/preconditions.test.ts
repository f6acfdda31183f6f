import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeNft } from '../../../test/nftables/fake-nft.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import { availableFamilies, checkKernelVersion, checkRuleset } from './preconditions.ts';

const skip = 'KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK';

function files(contents: Record<string, string>): SystemFiles {
  return {
    read: (path) => contents[path] ?? assert.fail(`ENOENT: ${path}`),
    write: () => assert.fail('nothing is to be written'),
  };
}

const kernel = (release: string): SystemFiles => files({ '/proc/sys/kernel/osrelease': `${release}\n` });

test('kernels from 5.13 on will do', () => {
  for (const release of ['5.13.0', '5.15.0-91-generic', '6.1.0', '10.0-rc1']) {
    checkKernelVersion(kernel(release), {});
  }
});

test('kernels before 5.13 are refused, unless the environment skips the check', () => {
  const tooOld = { message: 'kube-proxy in nftables mode requires kernel 5.13 or later' };
  for (const release of ['5.12.19', '5.4.0-1', '4.19.0']) {
    assert.throws(() => checkKernelVersion(kernel(release), {}), tooOld);
    assert.throws(() => checkKernelVersion(kernel(release), { [skip]: '' }), tooOld);
    checkKernelVersion(kernel(release), { [skip]: '0' });
  }
});

test('a version that cannot be read is an error that says so', () => {
  assert.throws(() => checkKernelVersion(files({}), {}), /^Error: could not check kernel version: ENOENT/);
  assert.throws(() => checkKernelVersion(kernel('unknown'), {}), /"unknown" does not begin with a version/);
});

test('IPv6 counts where it is there and not disabled', () => {
  const present = { '/proc/net/if_inet6': '' };
  const disabled = '/proc/sys/net/ipv6/conf/all/disable_ipv6';
  assert.deepEqual([...availableFamilies(files({ ...present, [disabled]: '0\n' }))], ['IPv4', 'IPv6']);
  assert.deepEqual([...availableFamilies(files({ ...present, [disabled]: '1\n' }))], ['IPv4']);
  assert.deepEqual([...availableFamilies(files({}))], ['IPv4']);
});

test('the ruleset is validated and nothing of it applied', async () => {
  const nft = new FakeNft();
  const settings = {
    family: 'IPv6',
    masqueradeBit: 14,
    masqueradeAll: false,
    localDetector: { kind: 'prefix', prefix: 'veth' },
    nodePortAddresses: nodePortAddresses('IPv6', []),
    nodeIP: '',
    localhostNodePorts: true,
  } as const;
  const status = (mask: string) => files({ '/proc/self/status': `Name:\tnode\nCapEff:\t${mask}\n` });
  await checkRuleset(nft, settings, status('0000000000001000'));
  assert.equal(await nft.getTable(), undefined);
  assert.deepEqual(
    nft.batches.map(({ applied }) => applied),
    [false],
  );
  nft.check = () => Promise.reject(new Error('no numgen'));
  const message = 'could not run nftables command: no numgen';
  await assert.rejects(checkRuleset(nft, settings, status('0000000000001000')), { message });
  await assert.rejects(checkRuleset(nft, settings, status('0000000000000400')), {
    message: `${message} (CAP_NET_ADMIN is missing)`,
  });
});
