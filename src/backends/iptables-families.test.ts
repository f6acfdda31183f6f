import assert from 'node:assert/strict';
import { test } from 'node:test';
import { world } from '../../test/iptables/fake-world.ts';
import { availableFamilies } from './iptables-families.ts';

const broken = { status: 3, text: "can't initialize iptables table `nat'" };

test('a node can hold rules of both families, of one, or of none', async () => {
  assert.deepEqual([...(await availableFamilies(world(() => undefined)))], ['IPv4', 'IPv6']);
  assert.deepEqual([...(await availableFamilies(world(() => undefined, {})))], ['IPv4']);
  const only6 = world((command) => (command.startsWith('iptables') ? broken : undefined));
  assert.deepEqual([...(await availableFamilies(only6))], ['IPv6']);
  await assert.rejects(availableFamilies(world(() => broken)), (error: Error) => {
    assert.match(error.message, /^iptables is not available on this host: iptables .*exit status 3: can't/);
    return true;
  });
});

test('a node with IPv6 switched off holds rules of IPv4 only', async () => {
  const files = { '/proc/net/if_inet6': '', '/proc/sys/net/ipv6/conf/all/disable_ipv6': '1\n' };
  assert.deepEqual([...(await availableFamilies(world(() => undefined, files)))], ['IPv4']);
});

test('the reason names a missing iptables, or the flavour that works', async () => {
  const bare = world(() => ({ missing: true }));
  await assert.rejects(availableFamilies(bare), /iptables is not installed.*ip6tables is not installed/);
  const mixed = world((command) => (command.includes('-legacy') ? undefined : broken));
  await assert.rejects(
    availableFamilies(mixed),
    /can't initialize.*\(iptables-legacy works here: it should be what iptables is\)/,
  );
});
