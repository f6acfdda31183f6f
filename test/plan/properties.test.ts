import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { familyOf } from '../../src/model/ip.ts';
import type { EndpointSliceObject, ServiceObject } from '../../src/model/objects.ts';
import { Planner } from '../../src/plan/planner.ts';
import { FamilyState } from '../../src/state/family-state.ts';
import { planContext, serviceObject, sliceObject } from './arbitraries.ts';
import { endpointsOf, portsOf } from './state-queries.ts';
import { timeSlice } from './time-slice.ts';

const family = fc.constantFrom('IPv4' as const, 'IPv6' as const);
const services = fc.uniqueArray(serviceObject, { selector: ({ name }) => name, size: 'max', maxLength: 3 });
const slices = fc.uniqueArray(sliceObject, { selector: ({ name }) => name, size: 'max', maxLength: 10 });

function load(
  family: 'IPv4' | 'IPv6',
  services: readonly ServiceObject[],
  slices: readonly EndpointSliceObject[],
): FamilyState {
  const state = new FamilyState({ family, nodeName: 'n1', startTime: 0, onProblem: () => {} });
  for (const object of services) state.updateService(undefined, object);
  for (const object of slices) state.updateSlice(object, false);
  state.acknowledge(state.takeDelta());
  return state;
}

test('no plan holds an address of the other family', async () => {
  await fc.assert(
    fc.asyncProperty(family, services, slices, planContext, async (family, services, slices, context) => {
      const planner = new Planner();
      await planner.apply('all', load(family, services, slices), context, timeSlice());
      for (const { port, endpoints, externalIPs } of planner.plans.values()) {
        const addresses = [
          port.clusterIP,
          ...port.loadBalancerVIPs,
          ...externalIPs,
          ...endpoints.map(({ ip }) => ip),
        ];
        for (const address of addresses) assert.equal(familyOf(address), family, address);
      }
    }),
  );
});

test('policy Local never yields an endpoint of another node, and every forward has endpoints', async () => {
  await fc.assert(
    fc.asyncProperty(family, services, slices, planContext, async (family, services, slices, context) => {
      const planner = new Planner();
      await planner.apply('all', load(family, services, slices), context, timeSlice());
      for (const plan of planner.plans.values()) {
        assert.ok(plan.local.every(({ isLocal }) => isLocal));
        for (const decision of [plan.internal, plan.external]) {
          if (decision.action === 'forward') assert.ok(plan[decision.endpoints].length > 0);
        }
        const { internalPolicyLocal, externalPolicyLocal } = plan.port;
        if (internalPolicyLocal)
          assert.notDeepEqual([plan.internal.action, 'cluster'], outcome(plan.internal));
        if (externalPolicyLocal)
          assert.notDeepEqual([plan.external.action, 'cluster'], outcome(plan.external));
        const parts = new Set([...plan.cluster, ...plan.local]);
        assert.deepEqual(new Set(plan.all), parts);
        assert.deepEqual(
          plan.all,
          plan.endpoints.filter((endpoint) => parts.has(endpoint)),
        );
      }
    }),
  );
});

const outcome = (decision: { action: string; endpoints?: string }) => [decision.action, decision.endpoints];

test('merging slices loses no ready endpoint that is not terminating, and invents none', () => {
  fc.assert(
    fc.property(family, services, slices, (family, services, slices) => {
      const state = load(family, services, slices);
      for (const [key, port] of portsOf(state)) {
        const offered = slices
          .filter(({ serviceName, addressType }) => serviceName === port.name && addressType === family)
          .filter(({ ports }) => ports.some((p) => p.name === port.portName && p.protocol === port.protocol))
          .flatMap(({ endpoints }) => endpoints)
          .filter(({ address }) => familyOf(address ?? '') === family);
        const merged = endpointsOf(state, key);
        assert.deepEqual(new Set(merged.map(({ ip }) => ip)), new Set(offered.map(({ address }) => address)));
        for (const { ip, terminating } of merged) {
          const records = offered.filter(({ address }) => address === ip);
          assert.equal(
            terminating,
            records.every((record) => record.terminating),
          );
        }
        assert.deepEqual(
          merged.map(({ id }) => id),
          merged.map(({ id }) => id).sort(),
        );
      }
    }),
  );
});

test('the order in which objects arrive changes nothing', async () => {
  const shuffled = <T>(items: fc.Arbitrary<T[]>) =>
    items.chain((all) =>
      fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length, maxLength: all.length })),
    );
  await fc.assert(
    fc.asyncProperty(
      family,
      shuffled(services),
      shuffled(slices),
      planContext,
      async (family, services, slices, context) => {
        const [first, second] = [new Planner(), new Planner()];
        await first.apply('all', load(family, services[0], slices[0]), context, timeSlice());
        await second.apply('all', load(family, services[1], slices[1]), context, timeSlice());
        assert.deepEqual(new Map(second.plans), new Map(first.plans));
      },
    ),
  );
});
