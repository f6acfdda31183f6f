import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { endpoint, type ServicePortParts, servicePort } from '../../test/cluster/objects.ts';
import { planOf } from '../../test/cluster/plans.ts';
import { timeSlice } from '../../test/plan/time-slice.ts';
import type { ServicePort } from '../model/service-port.ts';
import { frontendsOf } from './frontend.ts';
import { Ownership } from './ownership.ts';
import { Planner, type PlannerInput } from './planner.ts';
import type { PlanContext } from './topology.ts';

const context: PlanContext = { nodeName: 'n1', zone: '', allowExternalIPs: true };
const contested = '203.0.113.10';

/** Services by name; each has one endpoint. */
class Cluster implements PlannerInput {
  readonly planner = new Planner();
  readonly #services = new Map<string, ServicePort>();

  serviceNames(): Iterable<string> {
    return this.#services.keys();
  }

  service(name: string) {
    const port = this.#services.get(name);
    return port && { ports: [port], endpoints: () => [endpoint({ ip: '10.244.0.1' })] };
  }

  /** Adds, replaces or, without parts, deletes Services; returns the keys of plans that changed. */
  async set(services: Record<string, ServicePortParts | undefined>): Promise<string[]> {
    for (const [name, parts] of Object.entries(services)) {
      if (parts) this.#services.set(`default/${name}`, servicePort({ ...parts, name }));
      else this.#services.delete(`default/${name}`);
    }
    const names = Object.keys(services).map((name) => `default/${name}`);
    return [...(await this.planner.apply(names, this, context, timeSlice()))].sort();
  }

  /** A new planner that sees the same Services for the first time, as after a restart. */
  async restarted(): Promise<Planner> {
    const planner = new Planner();
    await planner.apply('all', this, context, timeSlice());
    return planner;
  }

  owner(name: string): string | undefined {
    return ownerIn(this.planner, name);
  }

  conflicts(): string[] {
    return [...this.planner.shortfalls()].map(({ key, error }) => `${key}: ${error.message}`);
  }
}

function ownerIn({ plans }: Planner, name: string): string | undefined {
  const owners = [...plans.values()].filter((plan) =>
    [...frontendsOf(plan)].some((one) => one.name === name),
  );
  assert.ok(owners.length <= 1, `${name} has several owners`);
  return owners[0]?.port.name;
}

const age = (seconds: number, uid = '') => ({ createdAt: seconds, uid });

suite('a destination that several Services claim', () => {
  const address = `${contested}:80/TCP`;

  test('an external IP cannot take a load balancer IP, however old or early in the alphabet its Service is', async () => {
    const cluster = new Cluster();
    await cluster.set({ victim: { clusterIP: '10.96.0.1', loadBalancerVIPs: [contested], ...age(200) } });
    const changed = await cluster.set({
      aaa: { clusterIP: '10.96.0.2', externalIPs: [contested], ...age(100) },
    });
    assert.equal(cluster.owner(address), 'victim');
    assert.deepEqual(changed, ['default/aaa/TCP'], 'the victim keeps its plan');
    assert.deepEqual(cluster.conflicts(), [
      `default/aaa/TCP: external IP ${address} belongs to service port default/victim/TCP`,
    ]);
    assert.equal(cluster.owner('10.96.0.2:80/TCP'), 'aaa', 'its other addresses are served');
  });

  test('a cluster IP comes before a load balancer IP and an external IP', async () => {
    const cluster = new Cluster();
    await cluster.set({
      a: { clusterIP: '10.96.0.1', loadBalancerVIPs: [contested], ...age(1) },
      b: { clusterIP: '10.96.0.2', externalIPs: [contested], ...age(2) },
      c: { clusterIP: contested, ...age(3) },
    });
    assert.equal(cluster.owner(address), 'c');
    assert.equal(cluster.conflicts().length, 2);
  });

  test('within one kind the older Service owns it, even if this node sees it later, and after a restart', async () => {
    const cluster = new Cluster();
    await cluster.set({ young: { clusterIP: '10.96.0.1', externalIPs: [contested], ...age(200) } });
    assert.equal(cluster.owner(address), 'young');
    const changed = await cluster.set({
      old: { clusterIP: '10.96.0.2', externalIPs: [contested], ...age(100) },
    });
    assert.deepEqual(changed, ['default/old/TCP', 'default/young/TCP']);
    assert.equal(cluster.owner(address), 'old');
    assert.equal(ownerIn(await cluster.restarted(), address), 'old');
  });

  test('of two Services of the same age the smaller UID owns it; without a UID, the smaller key', async () => {
    const cluster = new Cluster();
    await cluster.set({
      a: { clusterIP: '10.96.0.1', externalIPs: [contested], ...age(100, 'u2') },
      b: { clusterIP: '10.96.0.2', externalIPs: [contested], ...age(100, 'u1') },
    });
    assert.equal(cluster.owner(address), 'b');
    await cluster.set({
      a: { clusterIP: '10.96.0.1', externalIPs: [contested] },
      b: { clusterIP: '10.96.0.2', externalIPs: [contested] },
    });
    assert.equal(cluster.owner(address), 'a');
  });

  test('a Service without a creation timestamp counts as the newest', async () => {
    const cluster = new Cluster();
    await cluster.set({
      a: { clusterIP: '10.96.0.1', externalIPs: [contested] },
      b: { clusterIP: '10.96.0.2', externalIPs: [contested], ...age(100) },
    });
    assert.equal(cluster.owner(address), 'b');
  });

  test('when the owner is deleted or gives the address up, the next claimant owns it in the same call', async () => {
    const cluster = new Cluster();
    const all = {
      first: { clusterIP: '10.96.0.1', externalIPs: [contested], ...age(1) },
      second: { clusterIP: '10.96.0.2', externalIPs: [contested], ...age(2) },
      third: { clusterIP: '10.96.0.3', externalIPs: [contested], ...age(3) },
    };
    await cluster.set(all);
    const moved = await cluster.set({ first: { ...all.first, externalIPs: [] } });
    assert.equal(cluster.owner(address), 'second');
    assert.deepEqual(moved, ['default/first/TCP', 'default/second/TCP', 'default/third/TCP']);
    assert.deepEqual(cluster.conflicts(), [
      `default/third/TCP: external IP ${address} belongs to service port default/second/TCP`,
    ]);
    await cluster.set({ second: undefined });
    assert.equal(cluster.owner(address), 'third');
    assert.deepEqual(cluster.conflicts(), []);
  });

  test('two Services contest a node port only when port and protocol are equal', async () => {
    const cluster = new Cluster();
    await cluster.set({
      a: { clusterIP: '10.96.0.1', nodePort: 30_080, ...age(2) },
      b: { clusterIP: '10.96.0.2', nodePort: 30_080, ...age(1) },
      c: { clusterIP: '10.96.0.3', nodePort: 30_080, protocol: 'UDP', ...age(0) },
    });
    assert.equal(cluster.owner(':30080/TCP'), 'b');
    assert.equal(cluster.owner(':30080/UDP'), 'c');
    assert.equal(cluster.conflicts().length, 1);
  });

  test('external IPs claim nothing while their feature gate is off', async () => {
    const cluster = new Cluster();
    await cluster.set({
      a: { clusterIP: '10.96.0.1', externalIPs: [contested], ...age(1) },
      b: { clusterIP: '10.96.0.2', loadBalancerVIPs: ['203.0.113.11'], externalIPs: [contested], ...age(2) },
    });
    const planner = cluster.planner;
    await planner.apply([], cluster, { ...context, allowExternalIPs: false }, timeSlice());
    assert.equal(cluster.owner(address), undefined);
    assert.deepEqual(cluster.conflicts(), []);
    await planner.apply([], cluster, context, timeSlice());
    assert.equal(cluster.owner(address), 'a');
  });
});

test('after any changes in any order, ownership equals that of a fresh start, with one owner per destination', async () => {
  const addresses = ['203.0.113.10', '203.0.113.11', '10.96.0.1'];
  const parts = fc.record({
    clusterIP: fc.constantFrom('10.96.0.1', '10.96.0.2', '10.96.0.3'),
    externalIPs: fc.subarray(addresses),
    loadBalancerVIPs: fc.subarray(addresses),
    nodePort: fc.constantFrom(0, 30_080),
    createdAt: fc.integer({ min: 0, max: 2 }),
    uid: fc.constantFrom('', 'u1', 'u2'),
  });
  const step = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.option(parts, { nil: undefined }));
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      const cluster = new Cluster();
      for (const services of steps) {
        const before = new Map(cluster.planner.plans);
        const changed = new Set(await cluster.set(services));
        const fresh = await cluster.restarted();
        for (const [key, plan] of fresh.plans) {
          assert.deepEqual(cluster.planner.plans.get(key)?.lost, plan.lost, key);
          assert.equal(changed.has(key), before.get(key) !== cluster.planner.plans.get(key), key);
        }
        for (const ip of addresses) ownerIn(cluster.planner, `${ip}:80/TCP`);
        ownerIn(cluster.planner, ':30080/TCP');
        assert.deepEqual(cluster.conflicts().sort(), conflictsOf(fresh));
      }
    }),
    { numRuns: 200 },
  );
});

function conflictsOf(planner: Planner): string[] {
  return [...planner.shortfalls()].map(({ key, error }) => `${key}: ${error.message}`).sort();
}

test('release returns the keys of the other claimants', () => {
  const ownership = new Ownership();
  const [a, b] = ['a', 'b'].map((name) => planOf({ name, clusterIP: '10.96.0.1' }));
  assert.ok(a && b);
  ownership.claim(a);
  assert.equal(ownership.hasContests, false);
  ownership.claim(b);
  assert.equal(ownership.hasContests, true);
  assert.deepEqual(ownership.rivalsOf(a), [b.port.key]);
  assert.deepEqual(ownership.release(a), [b.port.key]);
  assert.equal(ownership.hasContests, false);
  assert.deepEqual(ownership.release(b), []);
});
