import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { pollIntervalMs } from '../../src/backends/ipvs/graceful.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { planOf, plansByKey } from '../cluster/plans.ts';
import type { FakeKernel } from './fake-kernel.ts';
import { Node } from './harness.ts';

const external = ['203.0.113.1', '203.0.113.2', '192.0.2.5'];

const endpoint = fc.record({
  ip: fc.constantFrom('10.244.0.1', '10.244.0.2', '10.244.0.3', '10.244.1.1', '10.244.1.2'),
  port: fc.constantFrom(8080, 8081),
  local: fc.boolean(),
  state: fc.constantFrom('ready' as const, 'ready' as const, 'draining' as const, 'gone' as const),
});

/** Service ports with few different values besides their names, so that they collide often. */
const plan: fc.Arbitrary<ServicePlan> = fc
  .record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    clusterIP: fc.constantFrom('10.96.0.1', '10.96.0.2', '203.0.113.1'),
    port: fc.constantFrom(80, 30080),
    protocol: fc.constantFrom('TCP' as const, 'UDP' as const, 'SCTP' as const),
    nodePort: fc.constantFrom(0, 30080, 30081),
    affinitySeconds: fc.constantFrom(0, 600),
    externalIPs: fc.subarray(external),
    loadBalancerVIPs: fc.subarray(external),
    sourceRanges: fc.subarray(['198.51.100.0/24', '198.51.100.7/32', '192.0.2.0/24']),
    externalPolicyLocal: fc.boolean(),
    internalPolicyLocal: fc.boolean(),
    healthCheckNodePort: fc.constantFrom(0, 32000),
    endpoints: fc.uniqueArray(endpoint, { maxLength: 5, selector: ({ ip, port }) => `${ip}:${port}` }),
  })
  .map(({ endpoints, ...parts }) => planOf(parts, endpoints));

/** The relevant state of the kernel as one comparable value. */
function view(fake: FakeKernel, withDraining = true) {
  return {
    servers: [...fake.virtual]
      .map(([key, { server }]) => ({
        key,
        server,
        reals: fake.reals(key).filter((real) => withDraining || !real.endsWith('=0')),
      }))
      .sort((a, b) => (a.key < b.key ? -1 : 1)),
    sets: [...fake.ipsets.keys()].sort().map((set) => [set, fake.entries(set)]),
    bound: [...(fake.bound ?? [])].sort(),
    rules: fake.rules,
  };
}

/** The kernel of a fresh node after one sync of these plans. */
async function fresh(plans: Iterable<ServicePlan>, onNode: string[]): Promise<FakeKernel> {
  const node = new Node();
  node.fake.onNode = onNode;
  await node.full(...plans);
  return node.fake;
}

type Step =
  | { readonly kind: 'change'; readonly plan: ServicePlan }
  | { readonly kind: 'remove'; readonly plan: ServicePlan }
  | { readonly kind: 'full' }
  | { readonly kind: 'addresses'; readonly onNode: string[] }
  | { readonly kind: 'connect'; readonly active: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('change'), plan }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('remove'), plan }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('full') }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('addresses'),
      onNode: fc.subarray(['192.0.2.5', '192.0.2.6', '203.0.113.2']),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('connect'), active: fc.nat(2) }) },
);

class World {
  readonly node = new Node();
  readonly plans = new Map<string, ServicePlan>();

  async take(step: Step): Promise<void> {
    const { fake } = this.node;
    if (step.kind === 'connect') return this.connectAll(step.active);
    if (step.kind === 'change') this.plans.set(step.plan.port.key, step.plan);
    if (step.kind === 'remove') this.plans.delete(step.plan.port.key);
    if (step.kind === 'addresses') fake.onNode = step.onNode;
    if (step.kind === 'change') await this.node.change(step.plan);
    else if (step.kind === 'remove') await this.node.remove(step.plan);
    else await this.node.full(...this.plans.values());
  }

  connectAll(active: number): void {
    const { fake } = this.node;
    for (const [server, { reals }] of fake.virtual) {
      for (const real of reals.keys()) fake.connect(server, real, active);
    }
  }
}

test('single changes give the same result as one full sync, and draining real servers end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
      const world = new World();
      const { fake, clock } = world.node;
      for (const step of steps) {
        await world.take(step);
        if (step.kind === 'connect') continue;
        const expected = await fresh(world.plans.values(), fake.onNode);
        assert.deepEqual(view(fake, false), view(expected, false));
      }
      world.connectAll(0);
      await clock.advance(pollIntervalMs);
      if (steps.some(({ kind }) => kind !== 'connect')) {
        assert.deepEqual(view(fake), view(await fresh(world.plans.values(), fake.onNode)));
      }
      assert.equal(clock.pending, 0);
    }),
    { numRuns: 150 },
  );
});

const plans = fc.array(plan, { maxLength: 5 }).map((list) => [...plansByKey(...list).values()]);
const garbage = fc.record({
  addresses: fc.subarray(['10.96.0.1', '10.9.9.9', '203.0.113.2']),
  entries: fc.subarray(['10.96.0.1,tcp:80', '10.9.9.9,udp:53']),
  servers: fc.subarray(['10.96.0.1', '10.9.9.9', '192.0.2.5']),
  weight: fc.nat(2),
});

test('a sync corrects any earlier state of the kernel, and the next one changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(plans, plans, garbage, async (before, after, garbage) => {
      const fake = await fresh(before, ['192.0.2.5']);
      for (const address of garbage.addresses) fake.bound?.add(address);
      for (const entry of garbage.entries) fake.ipsets.get('KUBE-EXTERNAL-IP')?.entries.add(entry);
      for (const address of garbage.servers) {
        const server = {
          address,
          port: 80,
          protocol: 'TCP',
          scheduler: 'wlc',
          flags: 0,
          timeout: 9,
          netmask: 0,
        } as const;
        fake.plant(server, { address: '10.244.0.1', port: 8080, weight: garbage.weight });
      }
      const node = new Node({}, fake);
      await node.full(...after);
      const held = view(fake);
      const expected = view(await fresh(after, ['192.0.2.5']));
      assert.deepEqual(withoutMasks(held), withoutMasks(expected));
      fake.takeLog();
      await node.full(...after);
      assert.deepEqual(fake.takeLog(), ['restore']);
    }),
    { numRuns: 150 },
  );
});

/** Without netmasks: the backend does not change a virtual server that differs only in its netmask. */
function withoutMasks({ servers, ...rest }: ReturnType<typeof view>) {
  return {
    ...rest,
    servers: servers.map(({ server, ...more }) => ({ ...more, server: { ...server, netmask: 0 } })),
  };
}

const faults = fc.constantFrom(
  /^add 10\.96\.0\.1:/,
  /^add 10\.244\.0\.1:/,
  /^edit/,
  /^bind/,
  /^unbind/,
  /^add .* @ KUBE-/,
  /^delete/,
  /^restore/,
  /^list real/,
  /^list ipset/,
  /^list device/,
  /^list node/,
);

test('after any failure the next full sync corrects everything', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(step, fc.option(faults)), { maxLength: 10 }), async (steps) => {
      const world = new World();
      const { node } = world;
      await node.full();
      for (const [step, fault] of steps) {
        node.fake.refuse = fault ?? undefined;
        await world.take(step).catch((error: unknown) => assert.ok(fault, `${error}`));
      }
      node.fake.refuse = undefined;
      world.connectAll(0);
      await node.full(...world.plans.values());
      await node.clock.advance(pollIntervalMs);
      assert.deepEqual(view(node.fake), view(await fresh(world.plans.values(), node.fake.onNode)));
    }),
    { numRuns: 150 },
  );
});
