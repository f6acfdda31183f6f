import assert from 'node:assert/strict';
import { test } from 'node:test';
import { world } from '../../../test/iptables/fake-world.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { availableFamilies, checkVersion, isConntrackLiberal, routeLocalnet } from './preconditions.ts';

const broken = { status: 3, text: "can't initialize iptables table `nat'" };

test('both families, one, or none', async () => {
  assert.deepEqual([...(await availableFamilies(world(() => undefined)))], ['IPv4', 'IPv6']);
  assert.deepEqual([...(await availableFamilies(world(() => undefined, {})))], ['IPv4']);
  const only6 = world((command) => (command.startsWith('iptables') ? broken : undefined));
  assert.deepEqual([...(await availableFamilies(only6))], ['IPv6']);
  await assert.rejects(availableFamilies(world(() => broken)), (error: Error) => {
    assert.match(error.message, /^iptables is not available on this host: iptables .*exit status 3: can't/);
    return true;
  });
});

test('IPv6 that is switched off does not count', async () => {
  const files = { '/proc/net/if_inet6': '', '/proc/sys/net/ipv6/conf/all/disable_ipv6': '1\n' };
  assert.deepEqual([...(await availableFamilies(world(() => undefined, files)))], ['IPv4']);
});

test('a machine without iptables says so, and one where the other flavour works says that', async () => {
  const bare = world(() => ({ missing: true }));
  await assert.rejects(availableFamilies(bare), /iptables is not installed.*ip6tables is not installed/);
  const mixed = world((command) => (command.includes('-legacy') ? undefined : broken));
  await assert.rejects(
    availableFamilies(mixed),
    /can't initialize.*\(iptables-legacy works here: it should be what iptables is\)/,
  );
});

test('an old iptables is refused', async () => {
  const versioned = (text: string) => {
    const { run, clock, logger } = world(() => ({ lines: [text] }));
    return checkVersion(new Commands({ family: 'IPv4', run, clock, logger }));
  };
  assert.equal(await versioned('iptables v1.6.2'), 'legacy');
  assert.equal(await versioned('iptables v1.10.0 (nf_tables)'), 'nft');
  assert.equal(await versioned('iptables, some other build (nf_tables)'), 'nft');
  await assert.rejects(versioned('iptables v1.4.21'), /iptables 1\.4\.21 is too old: 1\.6\.2 or later/);
});

test('route_localnet is set only when it is not, and a refusal is the end', () => {
  const name = '/proc/sys/net/ipv4/conf/all/route_localnet';
  const right = world(() => undefined, { [name]: '1\n' });
  routeLocalnet(right.files, right.logger);
  const wrong = world(() => undefined, { [name]: '0\n' });
  assert.throws(
    () => routeLocalnet(wrong.files, wrong.logger),
    /can't set sysctl .*route_localnet to 1: EROFS/,
  );
});

test('conntrack is liberal when it says so', () => {
  const name = '/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal';
  assert.equal(isConntrackLiberal(world(() => undefined, {}).files), false);
  assert.equal(isConntrackLiberal(world(() => undefined, { [name]: '0\n' }).files), false);
  assert.equal(isConntrackLiberal(world(() => undefined, { [name]: '1\n' }).files), true);
});
