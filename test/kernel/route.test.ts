import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openRouteClient, type RouteClient } from '../../src/kernel/route/client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import { eventually } from '../eventually.ts';

inNamespace(import.meta.url, () => {
  let client: RouteClient;
  before(async () => {
    client = openRouteClient(await loadLibc(), { clock: systemClock });
    sh('ip link add kpt-a type veth peer name kpt-b');
  });
  after(() => client.close());

  test('addresses of both families are listed with prefix and interface', async () => {
    sh('ip address add 192.0.2.10/24 dev kpt-a');
    sh('ip address add 10.0.0.1 peer 10.0.0.2/32 dev kpt-a');
    sh('ip address add 2001:db8::10/64 dev kpt-a nodad');
    const links = await client.listLinks();
    const index = (name: string) => links.find((link) => link.name === name)?.index;
    assert.ok(index('kpt-a') && index('kpt-a') !== index('lo'));
    const addresses = await client.listAddresses();
    const onA = { interfaceIndex: index('kpt-a') };
    assert.deepEqual(
      addresses.filter(({ interfaceIndex }) => interfaceIndex === index('kpt-a')),
      [
        { ip: '192.0.2.10', prefix: 24, ...onA },
        { ip: '10.0.0.1', prefix: 32, ...onA },
        { ip: '2001:db8::10', prefix: 64, ...onA },
      ],
    );
    const loopback = { ip: '127.0.0.1', prefix: 8, interfaceIndex: index('lo') };
    assert.deepEqual(
      addresses.find(({ ip }) => ip === '127.0.0.1'),
      loopback,
    );
  });

  test('the interface that leads to an address is looked up in the routes', async () => {
    sh('ip link add kpt-r type veth peer name kpt-s; ip link set kpt-r up; ip link set kpt-s up');
    sh('ip address add 198.51.100.1/24 dev kpt-r; ip route add unreachable 203.0.113.0/24');
    sh('ip address add 2001:db8:1::1/64 dev kpt-r nodad');
    const found = async (address: string) => [address, await client.interfaceTowards(address)];
    assert.deepEqual(await found('198.51.100.7'), ['198.51.100.7', 'kpt-r']);
    assert.deepEqual(await found('2001:db8:1::7'), ['2001:db8:1::7', 'kpt-r']);
    assert.deepEqual(await found('127.0.0.1'), ['127.0.0.1', 'lo']);
    assert.deepEqual(await found('203.0.113.7'), ['203.0.113.7', '']);
    assert.deepEqual(await found('8.8.8.8'), ['8.8.8.8', '']);
    assert.deepEqual(await found('nonsense'), ['nonsense', '']);
    sh('ip link delete kpt-r');
  });

  test('links are listed with name, kind and MTU', async () => {
    sh('ip link set kpt-a mtu 1400');
    const byName = new Map((await client.listLinks()).map((link) => [link.name, link]));
    assert.deepEqual([byName.get('lo')?.kind, byName.get('kpt-a')?.kind], ['', 'veth']);
    assert.equal(byName.get('kpt-a')?.mtu, 1400);
  });

  test('a watch reports added and removed addresses until it is closed', async () => {
    let changes = 0;
    const watch = client.watchAddresses(() => changes++, assert.fail);
    sh('ip address add 192.0.2.11/24 dev kpt-b');
    await eventually('the watch reports a new address', () => changes === 1);
    sh('ip address del 192.0.2.11/24 dev kpt-b');
    await eventually('the watch reports a removed address', () => changes === 2);
    watch.close();
    sh('ip address add 192.0.2.12/24 dev kpt-b');
    await client.listLinks();
    assert.equal(changes, 2);
  });
});
