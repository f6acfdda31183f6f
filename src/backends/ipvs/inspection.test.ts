import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { planOf, plansByKey } from '../../../test/cluster/plans.ts';
import { inspectionOf } from '../../../test/ipvs/fake-inspection.ts';
import { Node, settings } from '../../../test/ipvs/harness.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { Difference, KernelAnswer, Packet } from '../inspection.ts';

const web = planOf({ clusterIP: '10.96.0.1', nodePort: 30080 }, [
  { ip: '10.244.0.1', local: true },
  { ip: '10.244.1.1' },
]);
const guarded = planOf(
  {
    name: 'guarded',
    clusterIP: '10.96.0.2',
    loadBalancerVIPs: ['203.0.113.10'],
    sourceRanges: ['198.51.100.0/24'],
  },
  [{ ip: '10.244.1.2' }],
);
const empty = planOf({ name: 'empty', clusterIP: '10.96.0.3' });
const all = [web, guarded, empty];
const webServer = '10.96.0.1:80/TCP';

suite('a packet', () => {
  test('the answer for a packet has the sets, rules and servers on its way', async () => {
    const { evidence, fate } = await asked(await synced(), {});
    assert.deepEqual(fate, forward(['10.244.0.1:8080', 0.5, true], ['10.244.1.1:8080', 0.5, true]));
    const set = '-m set --match-set KUBE-CLUSTER-IP dst,dst';
    for (const line of [
      'add KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
      `-t nat -A KUBE-SERVICES ${set} -j ACCEPT`,
      '# 10.96.0.1 is on kube-ipvs0',
      '-A -t 10.96.0.1:80 -s rr',
      '-a -t 10.96.0.1:80 -r 10.244.1.1:8080 -m -w 1',
      '-t nat -A KUBE-MARK-MASQ -j MARK --or-mark 0x00004000',
    ]) {
      assert.ok(evidence.includes(line), `${line} is not in\n${evidence.join('\n')}`);
    }
  });

  test('a packet of a pod keeps its source, except where it goes back to itself', async () => {
    const { fate } = await asked(await synced(), { source: '10.244.0.1' });
    assert.deepEqual(fate, forward(['10.244.0.1:8080', 0.5, true], ['10.244.1.1:8080', 0.5, false]));
  });

  test('a packet to a service without endpoints is rejected', async () => {
    const { fate, evidence } = await asked(await synced(), { destination: '10.96.0.3' });
    assert.deepEqual(fate, { action: 'reject' });
    assert.ok(evidence.includes('# a virtual server without real servers rejects'));
  });

  test('a packet to an unused port of a bound address is rejected', async () => {
    const node = await synced();
    assert.deepEqual((await asked(node, { port: 22 })).fate, { action: 'reject' });
    assert.deepEqual((await asked(node, { port: 22, origin: 'node' })).fate, { action: 'reject' });
    assert.deepEqual((await asked(node, { destination: '192.0.2.5', port: 22 })).fate, { action: 'pass' });
    assert.deepEqual((await asked(node, { destination: '10.96.9.9' })).fate, { action: 'pass' });
  });

  test('a packet to a node port is served at addresses of the node', async () => {
    const { fate } = await asked(await synced(), { destination: '192.0.2.5', port: 30080 });
    assert.deepEqual(fate, forward(['10.244.0.1:8080', 0.5, true], ['10.244.1.1:8080', 0.5, true]));
  });

  test('a packet from outside the source ranges is dropped, from inside it is not', async () => {
    const node = await synced();
    const to = { destination: '203.0.113.10' };
    assert.deepEqual((await asked(node, to)).fate, { action: 'drop' });
    assert.equal((await asked(node, { ...to, source: '198.51.100.7' })).fate.action, 'forward');
  });

  test('a packet of the node from the balancer address is filtered', async () => {
    const node = await synced();
    const own = { destination: '203.0.113.10', origin: 'node' } as const;
    assert.deepEqual((await asked(node, { ...own, source: '203.0.113.10' })).fate, { action: 'drop' });
    assert.equal((await asked(node, { ...own, source: '192.0.2.5' })).fate.action, 'forward');
  });

  test('a packet finds no virtual server at an address that is not bound, unless the node sends it', async () => {
    const node = await synced();
    node.fake.bound?.delete('10.96.0.1');
    const { fate, evidence } = await asked(node, {});
    assert.deepEqual(fate, { action: 'pass' });
    assert.match(evidence.at(-1) ?? '', /no address of this node/);
    assert.equal((await asked(node, { origin: 'node' })).fate.action, 'forward');
  });

  test('a packet does not go to a draining real server', async () => {
    const node = await synced();
    weigh(node, '10.244.0.1:8080', 0);
    assert.deepEqual((await asked(node, {})).fate, forward(['10.244.1.1:8080', 1, true]));
    weigh(node, '10.244.1.1:8080', 0);
    assert.deepEqual((await asked(node, {})).fate, { action: 'reject' });
  });

  test('packets are distributed by weight, except under round robin', async () => {
    const node = await synced();
    weigh(node, '10.244.0.1:8080', 3);
    const chances = async () => {
      const { fate } = await asked(node, {});
      return fate.action === 'forward' ? fate.targets.map(({ probability }) => probability) : [];
    };
    assert.deepEqual(await chances(), [0.5, 0.5]);
    schedule(node, 'wrr');
    assert.deepEqual(await chances(), [0.75, 0.25]);
    schedule(node, 'lc');
    assert.deepEqual(await chances(), [0.75, 0.25]);
    assert.ok((await asked(node, {})).evidence.some((line) => line.includes('up to the scheduler lc')));
  });

  test('a rule of unknown meaning is an error', async () => {
    const node = await synced();
    const rules = node.fake.rules.replace(
      '-A KUBE-SERVICES',
      '-A KUBE-SERVICES -m ttl --ttl-eq 1 -j DROP\n-A KUBE-SERVICES',
    );
    await assert.rejects(asked(node, {}, rules), /not understood: -m ttl --ttl-eq 1/);
  });

  test('affinity lasts as long as the virtual server says', async () => {
    const node = new Node();
    await node.full(planOf({ clusterIP: '10.96.0.1', affinitySeconds: 600 }, [{ ip: '10.244.1.1' }]));
    const { fate, evidence } = await asked(node, {});
    assert.equal(fate.action === 'forward' && fate.affinitySeconds, 600);
    assert.ok(evidence.includes('-A -t 10.96.0.1:80 -s rr -p 600'));
  });
});

suite('a comparison', () => {
  test('a comparison finds no differences after a sync', async () => {
    assert.deepEqual(await compared(await synced()), []);
  });

  test('a comparison names servers, real servers, entries and addresses', async () => {
    const node = await synced();
    const { fake } = node;
    fake.virtual.delete('10.96.0.3:80/TCP');
    fake.virtual.get(webServer)?.reals.delete('10.244.1.1:8080');
    fake.plant({
      address: '10.96.0.99',
      port: 80,
      protocol: 'TCP',
      scheduler: 'rr',
      flags: 0,
      timeout: 0,
      netmask: 0,
    });
    fake.bound?.delete('10.96.0.2');
    fake.bound?.add('10.9.9.9');
    fake.ipsets.get('KUBE-CLUSTER-IP')?.entries.delete('10.96.0.1,tcp:80');
    fake.ipsets.get('KUBE-NODE-PORT-TCP')?.entries.add('31000');
    assert.deepEqual((await compared(node)).map(briefly).sort(), [
      'default/empty/TCP virtual server 10.96.0.3:80/TCP missing',
      'default/guarded/TCP address 10.96.0.2 missing',
      'default/web/TCP ipset entry KUBE-CLUSTER-IP 10.96.0.1,tcp:80 missing',
      'default/web/TCP real server 10.96.0.1:80/TCP 10.244.1.1:8080 missing',
      'nobody address 10.9.9.9 too many',
      'nobody ipset entry KUBE-NODE-PORT-TCP 31000 too many',
      'nobody virtual server 10.96.0.99:80/TCP too many',
    ]);
  });

  test('a comparison shows the actual and the wanted state', async () => {
    const node = await synced();
    schedule(node, 'lc');
    weigh(node, '10.244.1.1:8080', 0);
    assert.deepEqual(await compared(node), [
      {
        service: 'default/web/TCP',
        kind: 'virtual server',
        object: webServer,
        wanted: '-A -t 10.96.0.1:80 -s rr',
        found: '-A -t 10.96.0.1:80 -s lc',
      },
      {
        service: 'default/web/TCP',
        kind: 'real server',
        object: `${webServer} 10.244.1.1:8080`,
        wanted: '-a -t 10.96.0.1:80 -r 10.244.1.1:8080 -m -w 1',
        found: '-a -t 10.96.0.1:80 -r 10.244.1.1:8080 -m -w 0',
      },
    ]);
  });

  test('a comparison ignores draining real servers', async () => {
    const node = await synced();
    node.fake.virtual.get(webServer)?.reals.set('10.244.9.9:8080', {
      address: '10.244.9.9',
      port: 8080,
      weight: 0,
      active: 3,
      inactive: 0,
    });
    assert.deepEqual(await compared(node), []);
  });

  test('a comparison names rules and jumps', async () => {
    const node = await synced();
    const rules = node.fake.rules.replace(/^-A KUBE-MARK-MASQ .*\n/m, '');
    node.fake.jumps.splice(0, 1);
    assert.deepEqual((await compared(node, rules)).map(briefly), [
      'nobody jump filter OUTPUT missing',
      'nobody rule nat KUBE-MARK-MASQ missing',
    ]);
  });

  test('a comparison with an empty kernel names everything once', async () => {
    const found = (await compared(new Node())).map(briefly);
    assert.ok(found.includes('nobody device kube-ipvs0 missing'));
    assert.ok(found.includes('nobody ipset KUBE-LOOP-BACK missing'));
    assert.ok(
      found.includes('default/web/TCP ipset entry KUBE-LOOP-BACK 10.244.0.1,tcp:8080,10.244.0.1 missing'),
    );
    assert.ok(found.includes('nobody chain filter KUBE-IPVS-FILTER missing'));
    assert.equal(found.filter((line) => line.includes(' address 10.96.0.1 ')).length, 1);
    assert.ok(found.every((line) => line.endsWith('missing')));
  });

  test('a comparison fails when the kernel cannot be read', async () => {
    const node = await synced();
    node.fake.refuse = /list ipset KUBE-LOOP-BACK/;
    await assert.rejects(compared(node), /failed to list ipset KUBE-LOOP-BACK/);
  });
});

async function synced(plans: readonly ServicePlan[] = all): Promise<Node> {
  const node = new Node();
  assert.deepEqual((await node.full(...plans)).refused, []);
  return node;
}

function asked(node: Node, parts: Partial<Packet>, rules?: string): Promise<KernelAnswer> {
  const inspection = inspectionOf(node.fake, settings, rules === undefined ? {} : { rules });
  return inspection.ask({
    family: 'IPv4',
    protocol: 'TCP',
    source: '192.0.2.77',
    destination: '10.96.0.1',
    port: 80,
    origin: { interface: 'eth0' },
    ...parts,
  });
}

function compared(node: Node, rules?: string): Promise<readonly Difference[]> {
  const inspection = inspectionOf(node.fake, settings, rules === undefined ? {} : { rules });
  return inspection.compare({ plans: plansByKey(...all), serviceCIDRs: [], totalEndpoints: 0 });
}

function briefly({ service, kind, object, wanted }: Difference): string {
  return `${service ?? 'nobody'} ${kind} ${object} ${wanted === undefined ? 'too many' : 'missing'}`;
}

function forward(...targets: readonly (readonly [string, number, boolean])[]) {
  return {
    action: 'forward',
    targets: targets.map(([endpoint, probability, masquerade]) => ({ endpoint, probability, masquerade })),
    affinitySeconds: 0,
  };
}

function weigh(node: Node, real: string, weight: number): void {
  const known = node.fake.virtual.get(webServer)?.reals.get(real);
  assert.ok(known);
  Object.assign(known, { weight });
}

function schedule(node: Node, scheduler: string): void {
  const known = node.fake.virtual.get(webServer);
  assert.ok(known);
  known.server = { ...known.server, scheduler };
}
