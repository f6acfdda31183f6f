import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { after, afterEach, before, test } from 'node:test';
import { obstacleToSources } from '../../src/backends/userspace/capture.ts';
import type { SocketAddress } from '../../src/forwarder/socket-address.ts';
import { NftError } from '../../src/kernel/nft/errors.ts';
import { type Family, families } from '../../src/model/ip.ts';
import { type Ask, Host } from '../cluster/lab/host.ts';
import { inNamespace, ownNamespace, runBatch, sh } from '../cluster/lab/namespace.ts';
import { planOf } from '../cluster/plans.ts';
import { eventually } from '../eventually.ts';
import { prepareNode, UserspaceNode } from './node-under-test.ts';
import { Cleanups } from './peers.ts';

const clusterIPs: Readonly<Record<Family, string>> = { IPv4: '10.96.0.1', IPv6: 'fd00:96::1' };
const gateways: Readonly<Record<Family, string>> = { IPv4: '10.244.1.1', IPv6: 'fd00:244:1::1' };
const clientIPs: Readonly<Record<Family, string>> = { IPv4: '10.244.1.2', IPv6: 'fd00:244:1::2' };
const serverIPs: Readonly<Record<Family, string>> = { IPv4: '10.244.1.3', IPv6: 'fd00:244:1::3' };
const port = 8080;
const bridged = '/proc/sys/net/bridge/bridge-nf-call-';
const portRange = '/proc/sys/net/ipv4/ip_local_port_range';

const cleanups = new Cleanups();
let client: Host;
let server: Host;

/** A pod on the bridge of the node, as the CNI plugin `bridge` makes it: with the whole network on its link. */
function pod(name: string, addresses: Readonly<Record<Family, string>>): Host {
  const namespace = `${ownNamespace()}-${name}`;
  sh(`ip netns add ${namespace}`);
  runBatch(
    [],
    [`link add ${name} type veth peer name eth0 netns ${namespace}`, `link set ${name} master cni0 up`],
  );
  runBatch(
    ['-n', namespace],
    [
      'link set lo up',
      'link set eth0 up',
      `addr add ${addresses.IPv4}/24 dev eth0`,
      `addr add ${addresses.IPv6}/64 dev eth0 nodad`,
      `route add default via ${gateways.IPv4}`,
      `route add default via ${gateways.IPv6}`,
    ],
  );
  return new Host(name, namespace);
}

/** Serves a service whose endpoints are the server and others. */
async function serveAt(
  family: Family,
  protocol: 'TCP' | 'UDP' = 'TCP',
  ...others: readonly SocketAddress[]
): Promise<UserspaceNode> {
  const node = await UserspaceNode.open(cleanups, { family });
  const endpoints = [{ ip: serverIPs[family], port }, ...others];
  await node.program(planOf({ clusterIP: clusterIPs[family], protocol }, endpoints));
  return node;
}

inNamespace(import.meta.url, () => {
  const skip = existsSync(`${bridged}iptables`) ? false : 'the kernel has no br_netfilter';

  before(async () => {
    if (skip) return;
    prepareNode();
    for (const program of ['iptables', 'ip6tables']) writeFileSync(`${bridged}${program}`, '1');
    writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
    writeFileSync('/proc/sys/net/ipv6/conf/all/forwarding', '1');
    sh(`ip link add cni0 type bridge && ip link set cni0 up && ip addr add ${gateways.IPv4}/24 dev cni0`);
    sh(`ip addr add ${gateways.IPv6}/64 dev cni0 nodad`);
    client = pod('client', clientIPs);
    server = pod('server', serverIPs);
    for (const transport of ['tcp', 'udp'] as const) {
      for (const family of families) await server.serve(port, transport, serverIPs[family]);
    }
  });
  afterEach(() => cleanups.run());
  after(() => {
    client?.close();
    server?.close();
  });

  test('an endpoint on the bridge of the client sees the address of the client', { skip }, async () => {
    for (const family of families) {
      for (const transport of ['tcp', 'udp'] as const) {
        await serveAt(family, transport === 'tcp' ? 'TCP' : 'UDP');
        const outcome = await client.ask({ transport, address: clusterIPs[family], port: 80 });
        assert.deepEqual(outcome, { kind: 'answered', by: 'server', source: clientIPs[family] });
        await cleanups.run();
      }
    }
  });

  test('instead of an endpoint that does not answer, another one sees the address of the client', {
    skip,
  }, async () => {
    const silent: Readonly<Record<Family, string>> = { IPv4: '10.244.1.99', IPv6: 'fd00:244:1::99' };
    for (const family of families) {
      await serveAt(family, 'TCP', { ip: silent[family], port });
      for (let turn = 0; turn < 2; turn++) {
        const outcome = await client.ask({ address: clusterIPs[family], port: 80 });
        assert.deepEqual(outcome, { kind: 'answered', by: 'server', source: clientIPs[family] });
      }
      await cleanups.run();
    }
  });

  test('a UDP client whose address is kept avoids an endpoint that rejected it with an ICMP error', {
    skip,
  }, async () => {
    for (const family of families) {
      await serveAt(family, 'UDP', { ip: serverIPs[family], port: port + 1 });
      const outcomes: string[] = [];
      for (let turn = 0; turn < 4; turn++) {
        outcomes.push((await client.ask({ transport: 'udp', address: clusterIPs[family], port: 80 })).kind);
      }
      assert.ok(outcomes.filter((kind) => kind !== 'answered').length <= 1, outcomes.join(', '));
      await cleanups.run();
    }
  });

  test('an endpoint that is the client sees the address of the node', { skip }, async () => {
    await serveAt('IPv4');
    const outcome = await server.ask({ address: clusterIPs.IPv4, port: 80 });
    assert.deepEqual(outcome, { kind: 'answered', by: 'server', source: gateways.IPv4 });
  });

  test("a client's own connection to an endpoint and one from its address and port do not disturb each other", {
    skip,
  }, async () => {
    // Closed connections keep their port for a while.
    let taken = 40_000;
    for (const family of families) {
      const source = clientIPs[family];
      for (const isServiceFirst of [true, false]) {
        taken++;
        const toService: Ask = { address: clusterIPs[family], port: 80 };
        const toServer: Ask = { address: serverIPs[family], port, sourcePort: taken };
        const [first, second] = isServiceFirst ? [toService, toServer] : [toServer, toService];
        await serveAt(family);
        // From now on there is no other port for connections of the node.
        writeFileSync(portRange, `${taken} ${taken}`);
        cleanups.add(() => writeFileSync(portRange, '32768 60999'));
        const open = await client.open(first);
        assert.deepEqual(await client.ask(second), { kind: 'answered', by: 'server', source });
        assert.deepEqual(await open.ask(), { by: 'server', source });
        await open.close();
        await cleanups.run();
      }
    }
  });

  test('rules of others that change the marks of packets and of conntrack do not disturb', {
    skip,
  }, async () => {
    const others = `table ip others {
      chain prerouting { type filter hook prerouting priority mangle; meta mark set ct mark; }
      chain output { type route hook output priority mangle; meta mark set ct mark; }
      chain postrouting { type filter hook postrouting priority mangle; ct mark set 1; }
    }`;
    sh(`nft '${others}'`);
    cleanups.add(() => sh('nft delete table ip others'));
    await serveAt('IPv4');
    const outcome = await client.ask({ address: clusterIPs.IPv4, port: 80 });
    assert.deepEqual(outcome, { kind: 'answered', by: 'server', source: clientIPs.IPv4 });
  });

  test('a client whose connections another program puts into a zone of conntrack is served', {
    skip,
  }, async () => {
    sh(`nft 'table ip others {
      chain prerouting { type filter hook prerouting priority raw; ip saddr ${clientIPs.IPv4} ip daddr ${clusterIPs.IPv4} ct zone set 5;
      }
      chain output { type filter hook output priority raw; ip daddr ${clientIPs.IPv4} ct zone set 5;
      }
    }'`);
    cleanups.add(() => sh('nft delete table ip others'));
    await serveAt('IPv4');
    const outcome = await client.ask({ address: clusterIPs.IPv4, port: 80 });
    assert.deepEqual(outcome, { kind: 'answered', by: 'server', source: clientIPs.IPv4 });
  });

  test('without the rules for answers, endpoints see the address of the node', { skip }, async () => {
    const node = await UserspaceNode.open(cleanups, { keepsSource: false });
    await node.program(planOf({ clusterIP: clusterIPs.IPv4 }, [{ ip: serverIPs.IPv4, port }]));
    const outcome = await client.ask({ address: clusterIPs.IPv4, port: 80 });
    assert.deepEqual(outcome, { kind: 'answered', by: 'server', source: gateways.IPv4 });
  });

  test('a kernel that refuses the rules for answers is an obstacle, and so is a loopback address', async () => {
    const { kernel, settings } = await UserspaceNode.open(cleanups);
    assert.equal(await obstacleToSources(settings, kernel.nft), undefined);
    const loopback = await obstacleToSources({ ...settings, hostIP: '127.0.0.1' }, kernel.nft);
    assert.equal(loopback, 'proxy sockets listen on 127.0.0.1, a loopback address');
    kernel.nft.check = async () => {
      throw new NftError('check', [{ errno: 'EOPNOTSUPP', text: '' }]);
    };
    assert.match((await obstacleToSources(settings, kernel.nft)) ?? '', /^nftables: .*EOPNOTSUPP/);
  });

  test('the rules for answers are compared and repaired like all others', { skip }, async () => {
    const node = await serveAt('IPv4');
    const plan = planOf({ clusterIP: clusterIPs.IPv4 }, [{ ip: serverIPs.IPv4, port }]);
    assert.deepEqual(await node.differences(plan), []);
    sh('nft flush chain ip kube-proxy-userspace return-prerouting');
    await eventually('the rules are back', () => node.repairs > 0);
    await eventually('the client is answered', async () => {
      const outcome = await client.ask({ address: clusterIPs.IPv4, port: 80 });
      return outcome.kind === 'answered' && outcome.source === clientIPs.IPv4;
    });
  });
});
