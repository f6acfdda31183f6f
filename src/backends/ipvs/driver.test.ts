import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FaultyPlan, planOf } from '../../../test/cluster/plans.ts';
import { FakeKernel } from '../../../test/ipvs/fake-kernel.ts';
import { Node, retryMs } from '../../../test/ipvs/harness.ts';
import { parseCIDR } from '../../model/ip.ts';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { pollIntervalMs } from './graceful.ts';
import { setDefinition } from './sets.ts';

const service = (n: number, ...endpoints: number[]): ServicePlan =>
  planOf(
    { name: `s${n}`, clusterIP: `10.96.${n >> 8}.${n & 255}` },
    endpoints.map((e) => ({ ip: `10.244.0.${e}` })),
  );
const vip = '203.0.113.1';
const balanced = planOf({ name: 'lb', clusterIP: '10.96.0.50', loadBalancerVIPs: [vip] }, [
  { ip: '10.244.0.50' },
]);
const keys = (refused: readonly { readonly key: string }[]) => refused.map(({ key }) => key);

describe('what a sync writes', () => {
  test('the first sync makes everything, in order, and a second one restores only rules', async () => {
    const node = new Node();
    await node.full(service(1, 1));
    const log = node.fake.takeLog();
    assert.equal(log.filter((words) => words.startsWith('chain ')).length, 11);
    assert.equal(log.filter((words) => words.startsWith('jump ')).length, 9);
    assert.deepEqual(
      log.slice(20).filter((words) => !words.startsWith('create ipset')),
      [
        'create device',
        'add 10.96.0.1,tcp:80 @ KUBE-CLUSTER-IP',
        'add 10.96.0.1 @ KUBE-IPVS-IPS',
        'restore',
        'add 10.96.0.1:80/TCP',
        'add 10.244.0.1:8080 1 @ 10.96.0.1:80/TCP',
        'bind 10.96.0.1',
      ],
    );
    await node.full(service(1, 1));
    assert.deepEqual(node.fake.takeLog(), ['restore']);
  });

  test('one more endpoint among many services is one operation', async () => {
    const node = new Node();
    const many = Array.from({ length: 450 }, (_, n) => service(n + 1, 1, 2, 3));
    await node.full(...many);
    assert.equal(node.fake.virtual.size, 450);
    node.fake.takeLog();
    let looked = 0;
    const { listRealServers } = node.fake.kernel.servers;
    node.fake.kernel.servers.listRealServers = (server) => {
      looked++;
      return listRealServers(server);
    };
    await node.change(service(7, 1, 2, 3, 4));
    assert.deepEqual(node.fake.takeLog(), ['add 10.244.0.4:8080 1 @ 10.96.0.7:80/TCP']);
    assert.equal(looked, 0, 'nothing is read back');
  });

  test('rules are restored when a set begins or ceases to be used', async () => {
    const node = new Node();
    await node.full(service(1, 1));
    node.fake.takeLog();
    await node.change(service(2, 1));
    assert.ok(!node.fake.takeLog().includes('restore'));
    await node.change(balanced);
    assert.ok(node.fake.takeLog().includes('restore'));
    await node.remove(balanced);
    assert.deepEqual(node.fake.takeLog(), [
      'restore',
      'unbind 10.96.0.50',
      `unbind ${vip}`,
      'delete 10.96.0.50:80/TCP',
      `delete ${vip}:80/TCP`,
      'delete 10.96.0.50,tcp:80 @ KUBE-CLUSTER-IP',
      `delete ${vip},tcp:80 @ KUBE-LOAD-BALANCER`,
      'delete 10.96.0.50 @ KUBE-IPVS-IPS',
      `delete ${vip} @ KUBE-IPVS-IPS`,
    ]);
  });

  test('an address stays bound while any port of it is served', async () => {
    const node = new Node();
    const http = planOf({ clusterIP: '10.96.0.1', portName: 'http' });
    const https = planOf({ clusterIP: '10.96.0.1', portName: 'https', port: 443 });
    await node.full(http, https);
    await node.remove(http);
    assert.deepEqual([...node.fake.virtual.keys()], ['10.96.0.1:443/TCP']);
    assert.deepEqual([...(node.fake.bound ?? [])], ['10.96.0.1']);
    await node.remove(https);
    assert.equal(node.fake.virtual.size, 0);
    assert.deepEqual([...(node.fake.bound ?? [])], []);
  });

  test('a scheduler that changed with a restart is edited in place', async () => {
    const { fake } = await started(service(1, 1));
    await new Node({ scheduler: 'lc' }, fake).full(service(1, 1));
    assert.deepEqual(fake.takeLog(), ['restore', 'edit 10.96.0.1:80/TCP']);
  });

  test('a range of one address is not written twice', async () => {
    const guarded = planOf({
      clusterIP: '10.96.0.1',
      loadBalancerVIPs: [vip],
      sourceRanges: ['198.51.100.7/32'],
    });
    const { fake } = await started(guarded);
    await new Node({}, fake).full(guarded);
    assert.deepEqual(fake.takeLog(), ['restore']);
  });
});

async function started(...plans: readonly ServicePlan[]): Promise<Node> {
  const node = new Node();
  await node.full(...plans);
  node.fake.takeLog();
  return node;
}

describe('what others did', () => {
  test('a full sync deletes foreign virtual servers, except excluded ones, the other family and firewall marks', async () => {
    const fake = new FakeKernel();
    const foreign = {
      port: 80,
      protocol: 'TCP',
      scheduler: 'wlc',
      flags: 0,
      timeout: 0,
      netmask: 0xffffffff,
    } as const;
    for (const address of ['10.1.1.1', '10.1.2.1', 'fd00::1']) fake.plant({ ...foreign, address });
    fake.foreign.push({ foreign: 'firewall mark 7', family: 'IPv4', scheduler: 'rr' });
    const node = new Node({ excludeCIDRs: ['10.1.1.0/24'].flatMap((text) => parseCIDR(text) ?? []) }, fake);
    await node.full();
    assert.deepEqual([...fake.virtual.keys()], ['10.1.1.1:80/TCP', '[fd00::1]:80/TCP']);
    assert.deepEqual(
      fake.takeLog().filter((words) => words.startsWith('delete')),
      ['delete 10.1.2.1:80/TCP'],
    );
  });

  test('a full sync repairs the device, its addresses, a set and its entries', async () => {
    const node = await started(service(1, 1), service(2, 2));
    const { fake } = node;
    fake.bound = undefined;
    await node.full(service(1, 1), service(2, 2));
    assert.deepEqual([...(fake.bound ?? [])], ['10.96.0.1', '10.96.0.2']);
    fake.bound = new Set(['10.96.0.1', '10.96.0.2', '10.9.9.9']);
    fake.ipsets.delete('KUBE-CLUSTER-IP');
    fake.ipsets.get('KUBE-IPVS-IPS')?.entries.add('10.9.9.9');
    await node.full(service(1, 1), service(2, 2));
    assert.deepEqual([...fake.bound], ['10.96.0.1', '10.96.0.2']);
    assert.deepEqual(fake.entries('KUBE-CLUSTER-IP'), ['10.96.0.1,tcp:80', '10.96.0.2,tcp:80']);
    assert.deepEqual(fake.entries('KUBE-IPVS-IPS'), ['10.96.0.1', '10.96.0.2']);
  });

  test('a partial sync that meets an unexpected state is followed by a full one', async () => {
    const node = await started(service(1, 1), service(2, 2));
    node.fake.virtual.clear();
    assert.deepEqual(await node.change(service(2, 2, 3)), { refused: [] });
    assert.deepEqual([...node.fake.virtual.keys()], ['10.96.0.1:80/TCP', '10.96.0.2:80/TCP']);
    assert.deepEqual(node.fake.reals('10.96.0.2:80/TCP'), ['10.244.0.2:8080=1', '10.244.0.3:8080=1']);
  });
});

describe('a partial sync that lacks what it builds on puts it back', () => {
  test('a partial sync restores a missing device', async () => {
    const node = await started(service(1, 1));
    node.fake.bound = undefined;
    assert.deepEqual(await node.change(service(2, 2)), { refused: [] });
    assert.deepEqual([...(node.fake.bound ?? [])], ['10.96.0.1', '10.96.0.2']);
  });

  test('a partial sync restores missing chains', async () => {
    const node = await started(service(1, 1));
    node.fake.chains.clear();
    assert.deepEqual(await node.change(balanced), { refused: [] });
    assert.match(node.fake.rules, /--match-set KUBE-LOAD-BALANCER dst,dst -j ACCEPT/);
    assert.equal(node.fake.chains.size, 11);
  });
});

describe('node addresses', () => {
  test('an address that another interface gets is unbound and still served', async () => {
    const node = await started(balanced);
    node.fake.onNode = [...node.fake.onNode, vip];
    await node.change(balanced);
    assert.deepEqual([...(node.fake.bound ?? [])], ['10.96.0.50']);
    assert.deepEqual(node.fake.entries('KUBE-IPVS-IPS'), ['10.96.0.50']);
    assert.ok(node.fake.virtual.has(`${vip}:80/TCP`));
  });

  test('node ports follow the addresses, also in a partial sync', async () => {
    const plan = planOf({ clusterIP: '10.96.0.1', nodePort: 30080 });
    const node = new Node({ nodePortAddresses: nodePortAddresses('IPv4', ['192.0.2.0/24']) });
    await node.full(plan);
    assert.ok(node.fake.virtual.has('192.0.2.5:30080/TCP'));
    node.fake.onNode = ['192.0.2.6', '198.51.100.1'];
    await node.change(service(9, 1));
    assert.deepEqual([...node.fake.virtual.keys()].sort(), [
      '10.96.0.1:80/TCP',
      '10.96.0.9:80/TCP',
      '192.0.2.6:30080/TCP',
    ]);
  });

  test('when addresses cannot be listed, the known ones are used and a retry follows', async () => {
    const plan = planOf({ clusterIP: '10.96.0.1', nodePort: 30080 });
    const node = await started(plan);
    node.fake.refuse = /^list node/;
    await node.full(plan);
    assert.ok(node.fake.virtual.has('192.0.2.5:30080/TCP'));
    assert.deepEqual(node.fake.entries('KUBE-NODE-PORT-TCP'), ['30080']);
    await node.clock.advance(retryMs);
    assert.equal(node.requests, 1);
  });
});

describe('failures', () => {
  test('a failure of one service port is reported and retried, and affects no other', async () => {
    const node = new Node();
    node.fake.refuse = /^add 10\.96\.0\.2:/;
    const plans = [service(1, 1), service(2, 2), service(3, 3)];
    const { refused } = await node.full(...plans);
    assert.deepEqual(keys(refused), ['default/s2/TCP']);
    assert.match(refused[0]?.error.message ?? '', /^add 10\.96\.0\.2:80\/TCP: EPERM/);
    assert.deepEqual([...node.fake.virtual.keys()], ['10.96.0.1:80/TCP', '10.96.0.3:80/TCP']);
    assert.deepEqual([...(node.fake.bound ?? [])], ['10.96.0.1', '10.96.0.3'], 'no address without a server');
    assert.deepEqual(node.fake.entries('KUBE-IPVS-IPS'), ['10.96.0.1', '10.96.0.3']);

    assert.deepEqual(keys((await node.change(service(3, 3, 4))).refused), ['default/s2/TCP'], 'still so');
    assert.deepEqual(await node.remove(service(2)), { refused: [] }, 'gone with its cause');
    assert.deepEqual(keys((await node.change(service(2, 2))).refused), ['default/s2/TCP']);
    await node.clock.advance(retryMs);
    assert.equal(node.requests, 1);
    node.fake.refuse = undefined;
    assert.deepEqual(await node.full(...plans), { refused: [] });
    assert.deepEqual(node.fake.reals('10.96.0.2:80/TCP'), ['10.244.0.2:8080=1']);
    await node.clock.advance(10 * retryMs);
    assert.equal(node.requests, 1);
  });

  test('lasting failures are retried at growing intervals, up to a minute', async () => {
    const node = new Node({}, new FakeKernel(), 1);
    node.fake.refuse = /^add 10\.96\.0\.1:/;
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      await node.full(service(1, 1));
      node.requests = 0;
      await node.clock.advance(seconds * 1000 - 1);
      assert.equal(node.requests, 0);
      await node.clock.advance(1);
      assert.equal(node.requests, 1);
    }
    node.fake.refuse = undefined;
    await node.full(service(1, 1));
    node.fake.refuse = /^add 10\.96\.0\.2:/;
    await node.full(service(1, 1), service(2, 2));
    await node.clock.advance(1000);
    assert.equal(node.requests, 2, 'a success starts all over');
  });

  test('a virtual server that cannot be updated stays as it was', async () => {
    const node = await started(service(1, 1));
    node.fake.refuse = /^edit/;
    const sticky = planOf({ name: 's1', clusterIP: '10.96.0.1', affinitySeconds: 600 }, [
      { ip: '10.244.0.1' },
    ]);
    assert.deepEqual(keys((await node.change(sticky)).refused), ['default/s1/TCP']);
    assert.equal(node.fake.virtual.get('10.96.0.1:80/TCP')?.server.timeout, 0);
    assert.deepEqual([...(node.fake.bound ?? [])], ['10.96.0.1']);
  });

  test('an address that cannot be bound is not in the set of bound ones', async () => {
    const node = new Node();
    node.fake.refuse = /^bind 10\.96\.0\.1$/;
    assert.deepEqual(keys((await node.full(service(1, 1), service(2, 2))).refused), ['default/s1/TCP']);
    assert.deepEqual(node.fake.entries('KUBE-IPVS-IPS'), ['10.96.0.2']);
    assert.deepEqual([...(node.fake.bound ?? [])], ['10.96.0.2']);
  });

  test('a failure of a real server, or of its listing, is reported for its service port', async () => {
    const node = new Node();
    node.fake.refuse = /^add 10\.244\.0\.2:/;
    assert.deepEqual(keys((await node.full(service(1, 1, 2), service(2, 3))).refused), ['default/s1/TCP']);
    assert.deepEqual(node.fake.reals('10.96.0.1:80/TCP'), ['10.244.0.1:8080=1']);
    node.fake.refuse = /^list real servers of 10\.96\.0\.1:/;
    assert.deepEqual(keys((await node.full(service(1), service(2, 4))).refused), ['default/s1/TCP']);
    assert.deepEqual(node.fake.reals('10.96.0.1:80/TCP'), ['10.244.0.1:8080=1'], 'untouched');
    assert.deepEqual(node.fake.reals('10.96.0.2:80/TCP'), ['10.244.0.4:8080=1']);
  });

  test('an entry that cannot be added is reported for all service ports that want it', async () => {
    const node = new Node();
    node.fake.refuse = /^add 10\.96\.0\.1 @ KUBE-IPVS-IPS/;
    assert.deepEqual(keys((await node.full(service(1, 1), service(2, 2))).refused), ['default/s1/TCP']);
    assert.deepEqual([...(node.fake.bound ?? [])], ['10.96.0.1', '10.96.0.2']);
    assert.deepEqual(node.fake.reals('10.96.0.1:80/TCP'), ['10.244.0.1:8080=1']);
  });

  test('stale objects that cannot be removed are retried and reported for no service port', async () => {
    const node = await started(service(1, 1), service(2, 2));
    node.fake.refuse = /^(unbind|delete) 10\.96\.0\.2/;
    assert.deepEqual(await node.remove(service(2)), { refused: [] });
    assert.ok(node.fake.virtual.has('10.96.0.2:80/TCP'));
    await node.clock.advance(retryMs);
    assert.equal(node.requests, 1);
    node.fake.refuse = undefined;
    await node.full(service(1, 1));
    assert.deepEqual([...node.fake.virtual.keys()], ['10.96.0.1:80/TCP']);
    assert.deepEqual([...(node.fake.bound ?? [])], ['10.96.0.1']);
    assert.deepEqual(node.fake.entries('KUBE-CLUSTER-IP'), ['10.96.0.1,tcp:80']);
  });

  test('a sync fails before it writes when a chain, the device or a set cannot be made', async () => {
    for (const refuse of [/^chain nat KUBE-NODE-PORT/, /^create device/, /^create ipset KUBE-LOOP-BACK/]) {
      const node = new Node();
      node.fake.refuse = refuse;
      await assert.rejects(node.full(service(1, 1)), /failed to create .*EPERM/);
      assert.equal(node.fake.virtual.size, 0);
      assert.equal(node.fake.rules, '');
    }
    const node = new Node();
    const definition = { ...setDefinition('KUBE-CLUSTER-IP', 'IPv4'), maxElements: 9 };
    node.fake.ipsets.set('KUBE-CLUSTER-IP', { definition, entries: new Set() });
    await assert.rejects(node.full(service(1, 1)), /failed to create ipset KUBE-CLUSTER-IP: .*EEXIST/);
  });

  test('a jump that cannot be added, or a set that cannot be listed, is logged and retried', async () => {
    for (const [refuse, message] of [
      [/^jump nat OUTPUT/, /jump from OUTPUT to KUBE-SERVICES in table nat/],
      [/^list ipset KUBE-CLUSTER-IP/, /list ipset KUBE-CLUSTER-IP/],
      [/^list device/, /list the addresses of kube-ipvs0/],
    ] as const) {
      const node = new Node();
      node.fake.refuse = refuse;
      await node.full(service(1, 1));
      assert.match(node.log.lines.map(({ error }) => error).join(), message);
      assert.deepEqual(node.fake.reals('10.96.0.1:80/TCP'), ['10.244.0.1:8080=1']);
      assert.deepEqual([...(node.fake.bound ?? [])], ['10.96.0.1']);
      assert.notEqual(node.fake.rules, '');
      await node.clock.advance(retryMs);
      assert.equal(node.requests, 1);
    }
  });

  test('a failure to restore rules counts once, also when a full sync follows a partial one', async () => {
    const node = await started(service(1, 1));
    node.fake.refuse = /^restore/;
    await assert.rejects(node.change(balanced), /EPERM/);
    assert.equal(node.restoreFailures, 1);
    await assert.rejects(node.change(balanced), /EPERM/);
    assert.equal(node.restoreFailures, 2);
  });

  test('a failure after the first sync does not reset weights that another program set', async () => {
    const node = await started(service(1, 1), service(2, 2));
    node.fake.refuse = /^add 10.96.0.3/;
    await node.full(service(1, 1), service(2, 2), service(3, 3));
    node.fake.weigh('10.96.0.1:80/TCP', '10.244.0.1:8080', 5);
    await node.full(service(1, 1), service(2, 2), service(3, 3));
    assert.deepEqual(node.fake.reals('10.96.0.1:80/TCP'), ['10.244.0.1:8080=5']);
  });

  test('when rules cannot be restored, wanted services are served and stale ones stay', async () => {
    const node = await started(service(1, 1), service(2, 2));
    node.fake.refuse = /^restore/;
    await assert.rejects(node.full(service(1, 1), service(3, 3)), /EPERM/);
    assert.equal(node.restoreFailures, 1);
    assert.deepEqual(node.fake.reals('10.96.0.3:80/TCP'), ['10.244.0.3:8080=1'], 'what is wanted is served');
    assert.ok(node.fake.virtual.has('10.96.0.2:80/TCP'));
    assert.ok(node.fake.bound?.has('10.96.0.2'));
    node.fake.refuse = undefined;
    await node.change();
    assert.ok(!node.fake.virtual.has('10.96.0.2:80/TCP'), 'the next sync is a full one');
  });
});

describe('a Service that asks for a hash', () => {
  const port = { name: 'hashed', clusterIP: '10.96.0.60' };
  const endpoints = [{ ip: '10.244.0.60' }, { ip: '10.244.0.61' }];
  const plain = planOf(port, endpoints);
  const hashed = planOf({ ...port, balance: 'hash', affinitySeconds: 600 }, endpoints);
  const place = '10.96.0.60:80/TCP';
  const schedulingOf = (node: Node) => {
    const { scheduler, flags } = node.fake.virtual.get(place)?.server ?? {};
    return { scheduler, flags };
  };

  test('has its virtual server changed, and no real server is touched', async () => {
    const node = await started(plain);
    node.fake.takeLog();
    await node.change(hashed);
    assert.deepEqual(node.fake.takeLog(), [`edit ${place}`]);
    assert.deepEqual(schedulingOf(node), { scheduler: 'mh', flags: 0x19 });
    await node.change(plain);
    assert.deepEqual(node.fake.takeLog(), [`edit ${place}`]);
    assert.deepEqual(schedulingOf(node), { scheduler: 'rr', flags: 0 });
  });

  test('is served with the usual scheduler and reported where the kernel has no mh, until it has', async () => {
    const node = new Node();
    node.fake.lacking.add('mh');
    for (const sync of [() => node.full(hashed, service(1, 1)), () => node.change(hashed)]) {
      const { refused } = await sync();
      assert.deepEqual(keys(refused), [hashed.port.key]);
      assert.match(
        refused[0]?.error.message ?? '',
        /no scheduler mh \(module ip_vs_mh\).*; rr chooses endpoints/,
      );
      assert.deepEqual(schedulingOf(node), { scheduler: 'rr', flags: 0x1 });
      assert.deepEqual(node.fake.reals(place), ['10.244.0.60:8080=1', '10.244.0.61:8080=1']);
      assert.ok(node.fake.bound?.has('10.96.0.60'));
    }
    await node.clock.advance(2 * retryMs);
    assert.equal(node.requests, 1, 'it is tried again');
    node.fake.lacking.clear();
    assert.deepEqual(await node.full(hashed, service(1, 1)), { refused: [] });
    assert.deepEqual(schedulingOf(node), { scheduler: 'mh', flags: 0x19 });
  });

  test('asks a kernel without mh once in a sync, however many others there are', async () => {
    const node = new Node();
    node.fake.lacking.add('mh');
    const many = Array.from({ length: 450 }, (_, n) =>
      planOf({ name: `h${n}`, clusterIP: `10.97.${n >> 8}.${n & 255}`, balance: 'hash' }, endpoints),
    );
    const { refused } = await node.full(...many);
    assert.equal(refused.length, many.length);
    const written = node.fake.takeLog().filter((words) => /^add \S+:80\/TCP$/.test(words));
    assert.equal(written.length, many.length + 1);
    assert.equal(node.fake.virtual.size, many.length);
  });

  test('is refused as others are when its virtual server cannot be made at all', async () => {
    const node = new Node();
    node.fake.refuse = /^add 10\.96\.0\.60:/;
    const { refused } = await node.full(hashed);
    assert.match(refused[0]?.error.message ?? '', /EPERM/);
    assert.equal(node.fake.virtual.size, 0);
  });
});

test('syncs and checks of draining real servers never overlap', async () => {
  const node = new Node();
  await node.full(service(1, 1, 2));
  node.fake.connect('10.96.0.1:80/TCP', '10.244.0.2:8080', 1);
  await node.change(service(1, 1));
  const { listRealServers, listServers } = node.fake.kernel.servers;
  let inside = 0;
  let most = 0;
  const alone = async <T>(work: Promise<T>): Promise<T> => {
    most = Math.max(most, ++inside);
    await nextTurn();
    inside--;
    return work;
  };
  node.fake.kernel.servers.listServers = () => alone(listServers());
  node.fake.kernel.servers.listRealServers = (server) => alone(listRealServers(server));
  const looking = node.clock.advance(pollIntervalMs);
  await Promise.all([node.full(service(1, 1)), node.full(service(1, 1)), looking]);
  await node.backend.close();
  assert.equal(most, 1);
});

test('a sync that ends after close leaves no timer', async () => {
  const node = new Node();
  node.fake.refuse = /^add 10\.96\.0\.2:/;
  const sync = node.full(service(1, 1), service(2, 2));
  await node.backend.close();
  assert.equal((await sync).refused.length, 1);
  assert.equal(node.clock.pending, 0);
});

test('close cancels the retry and leaves everything in the kernel', async () => {
  const node = new Node();
  node.fake.refuse = /^add 10\.96\.0\.2:/;
  await node.full(service(1, 1), service(2, 2));
  await node.backend.close();
  assert.equal(node.clock.pending, 0);
  assert.deepEqual(node.fake.reals('10.96.0.1:80/TCP'), ['10.244.0.1:8080=1']);
});

test('a service port that cannot be prepared is refused with the reason, and the others are programmed', async () => {
  const node = new Node();
  const faulty = FaultyPlan.of({ name: 'faulty', clusterIP: '10.96.0.90' });
  for (const result of [await node.full(service(1, 1), faulty), await node.change(faulty, service(2, 2))]) {
    assert.deepEqual(
      result.refused.map(({ key, error }) => `${key} ${error.message}`),
      ['default/faulty/TCP cannot be prepared: no decision can be made'],
    );
  }
  assert.deepEqual(node.fake.reals('10.96.0.1:80/TCP'), ['10.244.0.1:8080=1']);
  assert.deepEqual(node.fake.reals('10.96.0.2:80/TCP'), ['10.244.0.2:8080=1']);
  assert.equal(node.backend.condition.retry, undefined);
});
