import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openRouteClient, type RouteClient } from '../../src/kernel/route/client.ts';
import { openRouteLookup } from '../../src/kernel/route/lookup.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { eventually } from '../eventually.ts';
import { inNetworkNamespace, sh } from './namespace.ts';

inNetworkNamespace(import.meta.filename, () => {
  let client: RouteClient;
  before(async () => {
    client = openRouteClient(await loadLibc(), { clock: systemClock });
    sh('ip link add kpt-a type veth peer name kpt-b');
  });
  after(() => client.close());

  test('addresses are listed with family, prefix, interface and scope', async () => {
    sh('ip address add 192.0.2.10/24 dev kpt-a');
    sh('ip address add 10.0.0.1 peer 10.0.0.2/32 dev kpt-a');
    sh('ip address add 2001:db8::10/64 dev kpt-a nodad');
    const links = await client.listLinks();
    const index = (name: string) => links.find((link) => link.name === name)?.index;
    assert.ok(index('kpt-a') && index('kpt-a') !== index('lo'));
    const addresses = (await client.listAddresses()).map(({ flags: _, ...address }) => address);
    const onA = { interfaceIndex: index('kpt-a'), scope: 'global' };
    assert.deepEqual(
      addresses.filter(({ interfaceIndex }) => interfaceIndex === index('kpt-a')),
      [
        { ip: '192.0.2.10', family: 'IPv4', prefix: 24, ...onA },
        { ip: '10.0.0.1', family: 'IPv4', prefix: 32, ...onA },
        { ip: '2001:db8::10', family: 'IPv6', prefix: 64, ...onA },
      ],
    );
    const loopback = {
      family: 'IPv4',
      ip: '127.0.0.1',
      prefix: 8,
      interfaceIndex: index('lo'),
      scope: 'host',
    };
    assert.deepEqual(
      addresses.find(({ ip }) => ip === '127.0.0.1'),
      loopback,
    );
  });

  test('the interface that leads to an address is looked up in the routes', async () => {
    sh('ip link add kpt-r type veth peer name kpt-s; ip link set kpt-r up; ip link set kpt-s up');
    sh('ip address add 198.51.100.1/24 dev kpt-r; ip route add unreachable 203.0.113.0/24');
    sh('ip address add 2001:db8:1::1/64 dev kpt-r nodad');
    const lookup = openRouteLookup(await loadLibc(), { clock: systemClock });
    const found = async (address: string) => [address, await lookup.interfaceTowards(address)];
    assert.deepEqual(await found('198.51.100.7'), ['198.51.100.7', 'kpt-r']);
    assert.deepEqual(await found('2001:db8:1::7'), ['2001:db8:1::7', 'kpt-r']);
    assert.deepEqual(await found('127.0.0.1'), ['127.0.0.1', 'lo']);
    assert.deepEqual(await found('203.0.113.7'), ['203.0.113.7', '']);
    assert.deepEqual(await found('8.8.8.8'), ['8.8.8.8', '']);
    assert.deepEqual(await found('nonsense'), ['nonsense', '']);
    lookup.close();
    sh('ip link delete kpt-r');
  });

  test('links are listed with name and state', async () => {
    const byName = new Map((await client.listLinks()).map((link) => [link.name, link]));
    assert.deepEqual([byName.get('lo')?.loopback, byName.get('lo')?.up], [true, true]);
    assert.deepEqual([byName.get('kpt-a')?.loopback, byName.get('kpt-a')?.up], [false, false]);
  });

  test('changes of addresses and links are told, until the watch is closed', async () => {
    const counts = { addresses: 0, links: 0 };
    const addresses = client.watchAddresses(() => counts.addresses++, assert.fail);
    const links = client.watchLinks(() => counts.links++, assert.fail);
    sh('ip address add 192.0.2.11/24 dev kpt-b');
    await eventually('a new address is told', () => counts.addresses === 1);
    sh('ip address del 192.0.2.11/24 dev kpt-b');
    await eventually('a removed address is told', () => counts.addresses === 2);
    assert.equal(counts.links, 0);
    sh('ip link set kpt-b up');
    await eventually('a link that goes up is told', () => counts.links > 0);
    addresses.close();
    sh('ip address add 192.0.2.12/24 dev kpt-b');
    links.close();
    sh('ip link set kpt-b down');
    const before = { ...counts };
    await client.listLinks();
    assert.deepEqual(counts, before);
  });
});
