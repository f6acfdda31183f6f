import assert from 'node:assert/strict';
import { test } from 'node:test';
import { world } from '../../../test/iptables/fake-world.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { checkVersion, isConntrackLiberal, routeLocalnet } from './preconditions.ts';

test('an old iptables is refused', async () => {
  const versioned = (text: string) => {
    const { run, clock, logger } = world(() => ({ lines: [text] }));
    return checkVersion(
      new Commands({ family: 'IPv4', run, clock, logger }),
      () => '/usr/sbin/iptables-wrapper',
    );
  };
  assert.equal(await versioned('iptables v1.6.2'), 'legacy');
  assert.equal(await versioned('iptables v1.10.0 (nf_tables)'), 'nft');
  assert.equal(await versioned('iptables, some other build (nf_tables)'), 'nft');
  await assert.rejects(versioned('iptables v1.4.21'), /iptables 1\.4\.21 is too old: 1\.6\.2 or later/);
});

test('a file whose name tells the flavour is not run', async () => {
  const flavourOf = (file: string) => {
    const { run, clock, logger } = world(() => assert.fail('it was run'));
    return checkVersion(new Commands({ family: 'IPv6', run, clock, logger }), (program) => {
      assert.equal(program, 'ip6tables');
      return file;
    });
  };
  assert.equal(await flavourOf('/usr/sbin/xtables-nft-multi'), 'nft');
  assert.equal(await flavourOf('/sbin/xtables-legacy-multi'), 'legacy');
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
