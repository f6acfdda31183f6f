import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FaultyPlan, planOf } from '../../../test/cluster/plans.ts';
import { FakeTables } from '../../../test/iptables/fake-tables.ts';
import { fakeHarness, rulesOf } from '../../../test/iptables/harness.ts';
import { CommandError } from '../../kernel/iptables/command-error.ts';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';

/** A service with so many endpoints; its name says its address. */
function web(number: number, endpoints = 1): ServicePlan {
  return planOf(
    { name: `web-${number}`, portName: 'http', clusterIP: `10.96.0.${number}` },
    Array.from({ length: endpoints }, (_, i) => ({ ip: `10.244.${number}.${i + 1}` })),
  );
}

const keyOf = (plan: ServicePlan) => plan.port.key;

/** What a node that only ever knew these plans would hold. */
async function freshContents(...plans: readonly ServicePlan[]) {
  const fresh = fakeHarness();
  await fresh.full(...plans);
  return fresh.tables.contents;
}

describe('a partial sync', () => {
  test('a partial sync asks the kernel nothing and writes one table', async () => {
    const harness = fakeHarness();
    await harness.full(web(1), web(2));
    harness.tables.calls.length = 0;
    await harness.change(web(1), web(2), web(3, 0));
    assert.deepEqual(harness.tables.calls, [
      '*filter\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -m comment --comment "default/web-3:http has no endpoints" -m tcp -p tcp -d 10.96.0.3 --dport 80 -j REJECT\nCOMMIT\n',
    ]);
  });

  test('a partial sync writes shared chains whole, in the order of names', async () => {
    const harness = fakeHarness();
    const named = (name: string, protocol: 'TCP' | 'UDP' = 'TCP') =>
      planOf({ name, clusterIP: `10.96.0.${name.length + name.charCodeAt(4)}`, protocol }, [
        { ip: '10.244.0.9' },
      ]);
    await harness.full(named('web-b'), named('web', 'UDP'));
    await harness.change(named('web-b'), named('web', 'UDP'), named('web'), named('web-a'));
    const order = rulesOf(harness.tables.restores.at(-1), 'KUBE-SERVICES').map(
      (rule) => `${/"default\/(\S+) cluster/.exec(rule)?.[1]} ${/-p (\w+)/.exec(rule)?.[1]}`,
    );
    assert.deepEqual(order, ['web tcp', 'web udp', 'web-a tcp', 'web-b tcp', 'undefined undefined']);
  });

  test('a partial sync without a change of rules writes nothing', async () => {
    const harness = fakeHarness();
    await harness.full(web(1));
    harness.tables.calls.length = 0;
    await harness.change(web(1));
    assert.deepEqual(harness.tables.calls, []);
    assert.equal(harness.metrics.get('last nat'), 0);
    assert.equal(harness.metrics.get('total nat'), 10);
  });

  test('a partial sync removes the chains of a deleted service', async () => {
    const harness = fakeHarness();
    await harness.full(web(1), web(2, 3));
    await harness.change(web(1));
    assert.deepEqual(harness.tables.contents, await freshContents(web(1)));
  });

  test('a refused partial sync is followed by a full one at once', async () => {
    const harness = fakeHarness();
    await harness.full(web(1), web(2));
    // Somebody removed a chain that we count on.
    harness.tables.tables.nat.delete('KUBE-MARK-MASQ');
    harness.tables.calls.length = 0;
    assert.deepEqual(await harness.change(web(1), web(2, 2)), []);
    assert.deepEqual(harness.tables.calls.slice(1, 3), ['ensureJumps', 'ensureCounters']);
    assert.deepEqual(harness.tables.contents, await freshContents(web(1), web(2, 2)));
    assert.equal(harness.metrics.get('failures'), 1);
    assert.equal(harness.metrics.get('partial failures'), 1);
  });

  test('a partial sync that fails without a refusal fails, and the next one is full', async () => {
    const harness = fakeHarness();
    await harness.full(web(1));
    harness.tables.failNext.set('restore', new Error('no lock'));
    await assert.rejects(harness.change(web(1), web(2)), /no lock/);
    assert.equal(harness.metrics.get('failures'), 1);
    assert.equal(harness.metrics.get('partial failures'), 1);
    harness.tables.calls.length = 0;
    await harness.change(web(1), web(2), web(3));
    assert.equal(harness.tables.calls[0], 'ensureJumps');
    assert.deepEqual(harness.tables.contents, await freshContents(web(1), web(2), web(3)));
  });
});

describe('while other programs hold the lock', () => {
  const busy = new CommandError('iptables-restore', [], {
    status: 4,
    timedOut: false,
    output: 'xtables lock',
  });

  test('a sync is tried again with everything while another program holds the lock', async () => {
    const harness = fakeHarness();
    await harness.full(web(1));
    harness.tables.calls.length = 0;
    harness.tables.failNext.set('restore', busy);
    harness.tables.failNext.set('ensureJumps', busy);
    assert.deepEqual(await harness.change(web(1), web(2)), []);
    assert.deepEqual(harness.tables.calls.slice(1, 4), ['ensureJumps', 'ensureJumps', 'ensureCounters']);
    assert.deepEqual(harness.tables.contents, await freshContents(web(1), web(2)));
  });

  test('a sync fails after three attempts to get the lock', async () => {
    const harness = fakeHarness();
    const { tables } = harness;
    const ensureJumps = tables.ensureJumps.bind(tables);
    tables.ensureJumps = () => {
      tables.failNext.set('ensureJumps', busy);
      return ensureJumps();
    };
    await assert.rejects(harness.full(web(1)), busy);
    assert.deepEqual(tables.calls, ['ensureJumps', 'ensureJumps', 'ensureJumps']);
  });

  test('the search for a refused service port is begun again', async () => {
    const harness = fakeHarness();
    const { tables } = harness;
    tables.refuse.push({ text: '10.96.0.2', at: 'COMMIT' });
    const restore = tables.restore.bind(tables);
    let isLocked = true;
    tables.restore = (input) => {
      const text = [...input].join('');
      if (!isLocked || !text.includes(':KUBE-SVC-TRIAL')) return restore([text]);
      isLocked = false;
      return Promise.reject(busy);
    };
    assert.deepEqual(await harness.full(web(1), web(2), web(3)), [keyOf(web(2))]);
    assert.deepEqual(tables.contents, await freshContents(web(1), web(3)));
  });
});

describe('a full sync', () => {
  test('a full sync fails when jumps cannot be made, without counting a failed restore', async () => {
    const harness = fakeHarness();
    harness.tables.failNext.set('ensureJumps', new Error('exit status 3'));
    await assert.rejects(harness.full(web(1)), /exit status 3/);
    assert.deepEqual(harness.tables.restores, []);
    assert.equal(harness.metrics.get('failures'), undefined);
  });

  test('a full sync repairs what another program changed', async () => {
    const harness = fakeHarness();
    await harness.full(web(1, 2));
    harness.tables.tables.nat.set('KUBE-SERVICES', ['-A KUBE-SERVICES -j RETURN']);
    await harness.again();
    assert.deepEqual(harness.tables.contents, await freshContents(web(1, 2)));
  });

  test('a full sync follows nfacct counters that come and go', async () => {
    const plan = planOf({ clusterIP: '10.96.0.1', nodePort: 30080 }, [{ ip: '10.244.0.1' }]);
    const harness = fakeHarness();
    harness.tables.counters = { invalidDropped: false, localhostAccepted: false };
    await harness.full(plan);
    assert.equal(harness.tables.contents['nat KUBE-NODEPORTS']?.length, 1);
    harness.tables.counters = { invalidDropped: true, localhostAccepted: true };
    await harness.again();
    assert.equal(harness.tables.contents['nat KUBE-NODEPORTS']?.length, 2);
    assert.match(harness.tables.contents['filter KUBE-FORWARD']?.[0] ?? '', /ct_state_invalid_dropped_pkts/);
  });
});

describe('where several restores are better than one', () => {
  const plans = [1, 2, 3, 4, 5].map((number) => web(number, 2));

  test('with several restores, chains exist before rules jump to them', async () => {
    const harness = fakeHarness('IPv4', {}, new FakeTables(6));
    await harness.full(...plans);
    const { restores } = harness.tables;
    assert.deepEqual(
      restores.map((input) => (input.match(/^:KUBE-S(VC|EP)-/gm) ?? []).length),
      [6, 6, 3, 0],
    );
    const jumping = restores.filter((input) => /^-A KUBE-SERVICES/m.test(input) || input.includes('*filter'));
    assert.deepEqual(jumping, restores.slice(-1));
    assert.deepEqual(harness.tables.contents, await freshContents(...plans));
    assert.equal(harness.metrics.get('last nat'), harness.metrics.get('total nat'));
  });

  test('a service port that is refused in any of several restores is left out', async () => {
    const harness = fakeHarness('IPv4', {}, new FakeTables(6));
    harness.tables.refuse.push({ text: 'DNAT --to-destination 10.244.4.2:8080', at: 'line' });
    assert.deepEqual(await harness.full(...plans), [keyOf(web(4))]);
    const rest = plans.filter(({ port }) => port.name !== 'web-4');
    assert.deepEqual(harness.tables.contents, await freshContents(...rest));
  });

  test('a refusal in the last of several restores leaves no chains of the first ones', async () => {
    const harness = fakeHarness('IPv4', {}, new FakeTables(6));
    harness.tables.refuse.push({ text: '-d 10.96.0.1 --dport 80 -j KUBE-SVC-', at: 'line' });
    assert.deepEqual(await harness.full(...plans), [keyOf(web(1))]);
    assert.deepEqual(harness.tables.contents, await freshContents(...plans.slice(1)));
  });
});

describe('stale chains', () => {
  const leave = (harness: ReturnType<typeof fakeHarness>, ...chains: string[]) => {
    for (const chain of chains) harness.tables.tables.nat.set(chain, [`-A ${chain} -j RETURN`]);
  };

  test('the first sync removes stale chains of an earlier run and no others', async () => {
    const harness = fakeHarness();
    leave(harness, 'KUBE-SVC-OLD', 'KUBE-SEP-OLD', 'KUBE-FW-OLD', 'KUBE-XLB-OLD', 'CILIUM-X');
    await harness.full(web(1));
    const left = [...harness.tables.tables.nat.keys()].filter((chain) => /OLD|CILIUM/.test(chain));
    assert.deepEqual(left, ['KUBE-XLB-OLD', 'CILIUM-X']);
  });

  test("stale chains that another program's rule jumps to are emptied and kept", async () => {
    const harness = fakeHarness();
    leave(harness, 'KUBE-SVC-OLD', 'KUBE-SEP-OLD');
    harness.tables.tables.nat.set('OUTPUT', ['-A OUTPUT -j KUBE-SVC-OLD']);
    assert.deepEqual(await harness.full(web(1)), []);
    assert.deepEqual(harness.tables.tables.nat.get('KUBE-SVC-OLD'), []);
    assert.ok(!harness.tables.tables.nat.has('KUBE-SEP-OLD'));
    harness.tables.calls.length = 0;
    await harness.change(web(1), web(2));
    assert.equal(harness.tables.calls.length, 1);
    harness.tables.tables.nat.set('OUTPUT', []);
    await harness.again();
    assert.deepEqual(harness.tables.contents, await freshContents(web(1), web(2)));
  });

  test('stale chains that cannot be removed for an unknown reason are emptied and kept', async () => {
    const harness = fakeHarness();
    leave(harness, 'KUBE-SVC-OLD', 'KUBE-SEP-OLD');
    harness.tables.refuse.push({ text: '-X KUBE-SVC-OLD', at: 'COMMIT' });
    assert.deepEqual(await harness.full(web(1)), []);
    assert.deepEqual(harness.tables.tables.nat.get('KUBE-SVC-OLD'), []);
    harness.tables.refuse.length = 0;
    await harness.again();
    assert.deepEqual(harness.tables.contents, await freshContents(web(1)));
  });
});

describe('in a large cluster', () => {
  const serviceChains = ({ tables }: ReturnType<typeof fakeHarness>) =>
    Object.keys(tables.contents).filter((chain) => /KUBE-S(VC|EP)-/.test(chain));
  const large = async (...plans: ServicePlan[]) => {
    const harness = fakeHarness();
    harness.totalEndpoints = 1001;
    await harness.full(...plans);
    return harness;
  };

  test('rules of endpoints have no comments, others have', async () => {
    const sticky = planOf({ clusterIP: '10.96.0.1', nodePort: 30080, affinitySeconds: 60 }, [
      { ip: '10.244.0.1' },
      { ip: '10.244.0.2' },
    ]);
    const harness = await large(sticky);
    const { contents } = harness.tables;
    for (const [chain, rules] of Object.entries(contents)) {
      const commented = rules.filter((rule) => rule.includes('--comment')).length;
      if (chain.includes('KUBE-SEP-')) assert.equal(commented, 0, chain);
      if (chain.includes('KUBE-SVC-')) assert.equal(commented, 1, chain);
    }
    assert.match(contents['nat KUBE-SERVICES']?.[0] ?? '', /default\/web cluster IP/);
    const endpointRules = Object.entries(contents).find(([chain]) => chain.includes('KUBE-SEP-'))?.[1];
    assert.match(endpointRules?.[0] ?? '', /^-A KUBE-SEP-\w+ -s 10\.244\.0\.\d -j KUBE-MARK-MASQ$/);
    assert.match(
      endpointRules?.[1] ?? '',
      /^-A (KUBE-SEP-\w+) -m recent --name \1 --set -m tcp -p tcp -j DNAT --to-destination 10\.244\.0\.\d:8080$/,
    );
  });

  test('1000 endpoints are not large yet', async () => {
    const harness = fakeHarness();
    harness.totalEndpoints = 1000;
    await harness.full(web(1));
    assert.equal(harness.backend.skipsHourlySync, false);
    assert.deepEqual(harness.tables.contents, await freshContents(web(1)));
    harness.totalEndpoints = 1001;
    await harness.again();
    assert.equal(harness.backend.skipsHourlySync, true);
    assert.notDeepEqual(harness.tables.contents, await freshContents(web(1)));
  });

  test('growing large rewrites only what changes anyway', async () => {
    const harness = fakeHarness();
    const first = web(1);
    await harness.full(first, web(2));
    harness.totalEndpoints = 1001;
    await harness.change(first, web(2, 2));
    const commented = Object.entries(harness.tables.contents)
      .filter(([chain]) => chain.includes('KUBE-SEP-'))
      .flatMap(([, rules]) => rules)
      .filter((rule) => rule.includes('--comment'));
    assert.ok(commented.length > 0);
    assert.ok(commented.every((rule) => rule.includes('default/web-1:http')));
  });

  test('stale chains linger for a sync period', async () => {
    const harness = await large(web(1), web(2));
    const unused = () => serviceChains(harness).length;
    await harness.clock.advance(1000);
    await harness.change(web(1));
    assert.equal(unused(), 4);
    assert.equal(rulesOf(harness.tables.restores.at(-1), 'KUBE-SERVICES').length, 2);
    await harness.clock.advance(29_000);
    await harness.change(web(1), web(3, 0));
    assert.equal(unused(), 4);
    await harness.clock.advance(1);
    harness.tables.calls.length = 0;
    await harness.change(web(1), web(3, 0), web(4, 0));
    assert.equal(unused(), 2);
    assert.equal(harness.tables.calls.length, 1);
  });

  test('what a full sync drops before its time is removed when that has come', async () => {
    const harness = await large(web(1, 3), web(2));
    await harness.clock.advance(1000);
    await harness.full(web(1, 2));
    assert.equal(serviceChains(harness).length, 6);
    await harness.clock.advance(29_001);
    harness.tables.calls.length = 0;
    await harness.change(web(1, 2), web(3));
    const fresh = await large(web(1, 2), web(3));
    assert.deepEqual(harness.tables.contents, fresh.tables.contents);
    assert.equal(harness.tables.calls.length, 1);
  });

  test('a service that comes back takes over its chains', async () => {
    const harness = await large(web(1), web(2));
    await harness.change(web(1));
    await harness.change(web(1), web(2));
    await harness.clock.advance(30_001);
    await harness.change(web(1), web(2), web(3));
    const fresh = await large(web(1), web(2), web(3));
    assert.deepEqual(harness.tables.contents, fresh.tables.contents);
  });
});

describe('node port addresses', () => {
  const some = { nodePortAddresses: nodePortAddresses('IPv4', ['10.0.0.0/8']), localhostNodePorts: false };
  const served = (harness: ReturnType<typeof fakeHarness>) =>
    rulesOf(harness.tables.contents['nat KUBE-SERVICES']?.join('\n'), 'KUBE-SERVICES')
      .filter((rule) => rule.endsWith('-j KUBE-NODEPORTS'))
      .map((rule) => / -d (\S+)/.exec(rule)?.[1]);

  test('every sync follows the addresses that serve node ports', async () => {
    const harness = fakeHarness('IPv4', some);
    harness.interfaceAddresses = async () => ['127.0.0.1', '10.0.0.2'];
    await harness.full(web(1));
    assert.deepEqual(served(harness), ['10.0.0.2']);
    harness.interfaceAddresses = async () => ['127.0.0.1', '10.0.0.3', '10.0.0.2'];
    await harness.change(web(1), web(2, 0));
    assert.deepEqual(served(harness), ['10.0.0.2', '10.0.0.3']);
  });

  test('a first sync without a list of addresses lacks node ports only', async () => {
    const harness = fakeHarness('IPv4', some);
    harness.interfaceAddresses = () => Promise.reject(new Error('no netlink'));
    await harness.full(web(1));
    assert.deepEqual(served(harness), []);
    assert.equal(harness.tables.contents['nat KUBE-SERVICES']?.length, 1);
    assert.match(harness.complaints.join(), /no netlink/);
  });
});

describe('a service port that is refused', () => {
  const others = [1, 2, 3, 4, 5, 6, 7, 9].map((number) => web(number));
  const bad = web(8);
  const good = web(8, 2);

  for (const at of ['line', 'next line', 'COMMIT'] as const) {
    test(`a service port that is refused at the ${at} is left out, and the rest is programmed`, async () => {
      const harness = fakeHarness();
      harness.tables.refuse.push({ text: 'DNAT --to-destination 10.244.8.1:8080', at });
      assert.deepEqual(await harness.full(...others, bad), [keyOf(bad)]);
      assert.deepEqual(harness.tables.contents, await freshContents(...others));
      harness.tables.refuse.length = 0;
      assert.deepEqual(await harness.change(...others, good), []);
      assert.deepEqual(harness.tables.contents, await freshContents(...others, good));
    });
  }

  test('a service port that is refused after a change is found without interrupting others', async () => {
    const harness = fakeHarness();
    await harness.full(...others, good);
    harness.tables.refuse.push({ text: 'DNAT --to-destination 10.244.8.1:8080', at: 'COMMIT' });
    harness.tables.refuse.push({ text: '"default/web-3:http -> 10.244.3.2:8080"', at: 'COMMIT' });
    harness.tables.calls.length = 0;
    const changed = others.map((plan) => (plan === others[2] ? web(3, 2) : plan));
    assert.deepEqual(await harness.change(...changed, bad), [keyOf(web(3)), keyOf(bad)]);
    const rest = others.filter((plan) => plan !== others[2]);
    assert.deepEqual(harness.tables.contents, await freshContents(...rest));
    const touching = harness.tables.restores.filter((input) => /^:KUBE-SERVICES/m.test(input));
    for (const input of touching) {
      for (const { port } of rest) assert.ok(input.includes(`"default/${port.name}:http cluster IP"`));
    }
    assert.equal(touching.length, 2);
  });

  test('a refused service port stays refused while it does not change', async () => {
    const harness = fakeHarness();
    harness.tables.refuse.push({ text: '10.244.8.1', at: 'line' });
    await harness.full(...others, bad);
    harness.tables.calls.length = 0;
    assert.deepEqual(await harness.change(...others, bad, web(10)), [keyOf(bad)]);
    assert.equal(harness.tables.calls.length, 1);
  });

  test('a service port with a malicious name is refused without being tried', async () => {
    const harness = fakeHarness();
    const evil = planOf({ name: 'x"\n-F KUBE-SERVICES', clusterIP: '10.96.0.8' }, [{ ip: '10.244.8.1' }]);
    assert.deepEqual(await harness.full(...others, evil), [keyOf(evil)]);
    assert.deepEqual(await harness.change(...others, evil, web(10)), [keyOf(evil)]);
    assert.deepEqual(harness.tables.contents, await freshContents(...others, web(10)));
    assert.deepEqual(await harness.change(...others, web(10)), []);
  });

  test('a service port that cannot be prepared is refused, and the others are programmed', async () => {
    const harness = fakeHarness();
    const faulty = FaultyPlan.of({ name: 'faulty', clusterIP: '10.96.0.90' });
    assert.deepEqual(await harness.full(...others, faulty), [keyOf(faulty)]);
    assert.deepEqual(await harness.change(...others, faulty, web(10)), [keyOf(faulty)]);
    assert.deepEqual(harness.tables.contents, await freshContents(...others, web(10)));
  });

  test('no service port is refused when shared rules are at fault', async () => {
    const harness = fakeHarness();
    harness.tables.refuse.push({ text: 'MASQUERADE --random-fully', at: 'COMMIT' });
    await assert.rejects(harness.full(...others), /failed/);
    assert.ok(!harness.tables.tables.nat.has('KUBE-SVC-TRIAL'));
    assert.ok(!harness.tables.tables.filter.has('KUBE-SVC-TRIAL'));
  });
});
