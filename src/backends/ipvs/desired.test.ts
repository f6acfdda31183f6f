import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf, plansByKey } from '../../../test/cluster/plans.ts';
import { settings } from '../../../test/ipvs/harness.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { DesiredState, Touched } from './desired.ts';
import { interfaceFacts } from './interface-facts.ts';

function stateOf(...plans: readonly ServicePlan[]): DesiredState {
  const desired = new DesiredState(settings);
  for (const plan of plansByKey(...plans).values()) desired.place(plan.port.key, plan);
  return desired;
}

const shared = '203.0.113.1';
const a = planOf({ name: 'a', clusterIP: '10.96.0.1', externalIPs: [shared] }, [{ ip: '10.244.0.1' }]);
const b = planOf({ name: 'b', clusterIP: '10.96.0.2', externalIPs: [shared] }, [{ ip: '10.244.0.2' }]);
const owner = planOf({ name: 'z', clusterIP: shared }, [{ ip: '10.244.0.9' }]);

test('a virtual server goes to the service port that has the address, whatever the order', () => {
  const key = `${shared}:80/TCP`;
  for (const desired of [stateOf(a, b), stateOf(b, a)]) {
    assert.equal(desired.server(key)?.owner, a.port.key);
    assert.deepEqual(desired.server(key)?.endpoints, a.cluster);
    desired.place(a.port.key, undefined);
    desired.place(b.port.key, b);
    assert.equal(desired.server(key)?.owner, b.port.key);
    assert.ok(desired.wantsAddress(shared));
    desired.place(b.port.key, undefined);
    assert.equal(desired.server(key), undefined);
    assert.ok(!desired.wantsAddress(shared));
  }
  for (const desired of [stateOf(a, b, owner), stateOf(owner, b, a)]) {
    assert.equal(desired.server(key)?.owner, owner.port.key, 'a cluster IP cannot be taken over');
  }
});

test('an external address outranks a node port at the same address of the node', () => {
  const nodePort = planOf({ name: 'a', clusterIP: '10.96.0.1', nodePort: 30_080 });
  const external = planOf({ name: 'b', clusterIP: '10.96.0.2', externalIPs: [shared], port: 30_080 });
  const desired = new DesiredState(settings);
  desired.setFacts({ addresses: new Set([shared]), nodePortIPs: [shared] });
  for (const plan of [nodePort, external]) desired.place(plan.port.key, plan);
  assert.equal(desired.server(`${shared}:30080/TCP`)?.owner, external.port.key);
});

test('a change touches what the service port had and has, and nothing else', () => {
  const desired = stateOf(a, b);
  const touched = new Touched();
  const moved = planOf({ name: 'a', clusterIP: '10.96.0.3' }, [{ ip: '10.244.0.1' }]);
  desired.place(moved.port.key, moved, touched);
  assert.deepEqual([...touched.servers], ['10.96.0.1:80/TCP', `${shared}:80/TCP`, '10.96.0.3:80/TCP']);
  assert.deepEqual([...touched.addresses], ['10.96.0.1', shared, '10.96.0.3']);
  assert.deepEqual(
    [...touched.entries].map(([set, entries]) => `${set} ${[...entries].join(' ')}`),
    [
      'KUBE-CLUSTER-IP 10.96.0.1,tcp:80 10.96.0.3,tcp:80',
      `KUBE-EXTERNAL-IP ${shared},tcp:80`,
      `KUBE-IPVS-IPS 10.96.0.1 ${shared} 10.96.0.3`,
    ],
  );
});

test('the text of rules is made anew only when it would differ', () => {
  const desired = stateOf(a);
  const before = desired.rules();
  const more = planOf({ name: 'c', clusterIP: '10.96.0.4' });
  desired.place(more.port.key, more);
  assert.equal(desired.rules(), before);
  const guarded = planOf({
    name: 'd',
    clusterIP: '10.96.0.5',
    loadBalancerVIPs: ['203.0.113.7'],
    sourceRanges: ['198.51.100.0/24'],
  });
  desired.place(guarded.port.key, guarded);
  assert.match(desired.rules(), /-A KUBE-IPVS-OUT-FILTER -s 203\.0\.113\.7 /);
  desired.place(guarded.port.key, undefined);
  assert.equal(desired.rules(), before);
});

test('other node addresses make another fragment of the same plan', () => {
  const desired = stateOf(a);
  assert.ok(desired.wantsAddress(shared));
  desired.setFacts(interfaceFacts(settings, [shared]));
  desired.place(a.port.key, a);
  assert.ok(!desired.wantsAddress(shared));
  assert.ok(desired.server(`${shared}:80/TCP`), 'it is served all the same');
});
