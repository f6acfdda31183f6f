import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endpoint, endpoints, numbers, servicePort, webPort } from '../../test/cluster/objects.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { timeSlice } from '../../test/plan/time-slice.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { ServicePort } from '../model/service-port.ts';
import { Planner, type PlannerInput } from './planner.ts';

const here = { nodeName: 'n1', zone: 'za', allowExternalIPs: true };

/** What a planner reads, by Service: the shorthand of each port by port name, and the endpoints of all ports. */
type World = Record<string, { ports: Record<string, string>; endpoints: string }>;

const clusterIPs = new Map<string, string>();

/** An address of its own for every Service. */
function clusterIPOf(name: string): string {
  const number = clusterIPs.size;
  if (!clusterIPs.has(name)) clusterIPs.set(name, `10.96.${number >> 8}.${number & 255}`);
  return clusterIPs.get(name) ?? '';
}

function input(world: World): PlannerInput {
  return {
    serviceNames: () => Object.keys(world),
    service(name) {
      const found = world[name];
      if (!found) return undefined;
      const [namespace = '', service = ''] = name.split('/');
      const clusterIP = clusterIPOf(name);
      const ports = Object.entries(found.ports).map(([portName, shorthand]): ServicePort => {
        const key = `${name}:${portName}/TCP`;
        return webPort(shorthand, {
          key,
          namespace,
          name: service,
          portName,
          clusterIP,
          port: portName.charCodeAt(0),
        });
      });
      return { ports, endpoints: (): Endpoint[] => endpoints(found.endpoints) };
    },
  };
}

const sorted = (keys: ReadonlySet<string>) => [...keys].sort();

test('the planner plans only the named Services, and an unchanged plan stays the same object', async () => {
  const planner = new Planner();
  const world: World = {
    'a/x': { ports: { p: '', q: 'np' }, endpoints: '1R@n1' },
    'a/y': { ports: { p: '' }, endpoints: '1R@n2' },
  };
  assert.deepEqual(sorted(await planner.apply('all', input(world), here, timeSlice())), [
    'a/x:p/TCP',
    'a/x:q/TCP',
    'a/y:p/TCP',
  ]);
  const before = new Map(planner.plans);
  assert.deepEqual(sorted(await planner.apply(['a/x', 'a/y'], input(world), { ...here }, timeSlice())), []);

  world['a/x'] = { ports: { p: '', q: 'np eL' }, endpoints: '1R@n1' };
  world['a/y'] = { ports: { p: '' }, endpoints: '2R@n2' };
  assert.deepEqual(sorted(await planner.apply(['a/x'], input(world), here, timeSlice())), ['a/x:q/TCP']);
  assert.equal(planner.plans.get('a/x:p/TCP'), before.get('a/x:p/TCP'));
  assert.notEqual(planner.plans.get('a/x:q/TCP'), before.get('a/x:q/TCP'));
  assert.equal(planner.plans.get('a/y:p/TCP'), before.get('a/y:p/TCP'), 'not named, not planned');
  assert.deepEqual(sorted(await planner.apply('all', input(world), here, timeSlice())), ['a/y:p/TCP']);
});

test('the planner returns the keys of removed ports and Services', async () => {
  const planner = new Planner();
  await planner.apply('all', input({ 'a/x': { ports: { p: '', q: '' }, endpoints: '' } }), here, timeSlice());
  const rest = input({ 'a/x': { ports: { q: '' }, endpoints: '' } });
  assert.deepEqual(sorted(await planner.apply(['a/x'], rest, here, timeSlice())), ['a/x:p/TCP']);
  assert.deepEqual(sorted(await planner.apply('all', input({}), here, timeSlice())), ['a/x:q/TCP']);
  assert.equal(planner.plans.size, 0);
  assert.deepEqual(sorted(await planner.apply(['a/x', 'a/unknown'], input({}), here, timeSlice())), []);
});

test('an endpoint that takes no traffic still makes a new plan, because plans list all endpoints', async () => {
  const planner = new Planner();
  await planner.apply('all', input({ 'a/x': { ports: { p: '' }, endpoints: '1R@n1' } }), here, timeSlice());
  const world = input({ 'a/x': { ports: { p: '' }, endpoints: '1R@n1 2X@n1' } });
  assert.deepEqual(sorted(await planner.apply(['a/x'], world, here, timeSlice())), ['a/x:p/TCP']);
  assert.equal(numbers(planner.plans.get('a/x:p/TCP')?.endpoints ?? []), '1 2');
});

test('a new zone replaces only the plans whose endpoints have hints', async () => {
  const planner = new Planner();
  const world = input({
    'a/x': { ports: { p: '' }, endpoints: '1R@n1/za 2R@n2/zb' },
    'a/y': { ports: { p: '' }, endpoints: '1R@n1 2R@n2' },
  });
  await planner.apply('all', world, here, timeSlice());
  const untouched = planner.plans.get('a/y:p/TCP');
  assert.deepEqual(sorted(await planner.apply([], world, { ...here, zone: 'zb' }, timeSlice())), [
    'a/x:p/TCP',
  ]);
  assert.equal(numbers(planner.plans.get('a/x:p/TCP')?.cluster ?? []), '2');
  assert.equal(planner.plans.get('a/y:p/TCP'), untouched);
  assert.deepEqual(
    sorted(await planner.apply(['a/x', 'a/y'], world, { ...here, zone: 'zb' }, timeSlice())),
    [],
  );
});

test('a change of the feature gate for external IPs replaces the plans, though no Service is named', async () => {
  const planner = new Planner();
  const world = input({ 'a/x': { ports: { p: 'xip' }, endpoints: '1R@n1' } });
  await planner.apply('all', world, here, timeSlice());
  assert.deepEqual(
    sorted(await planner.apply([], world, { ...here, allowExternalIPs: false }, timeSlice())),
    ['a/x:p/TCP'],
  );
  assert.deepEqual(planner.plans.get('a/x:p/TCP')?.externalIPs, []);
});

test('the planner counts service ports and Services without local endpoints', async () => {
  const planner = new Planner();
  const counts = () => [planner.noLocalEndpoints, planner.servicesWithoutLocalEndpoints];
  const world: World = {
    // Both policies, two ports: twice in the one count, once in the other.
    'a/both': { ports: { p: 'iL eL np', q: 'iL eL np' }, endpoints: '1R@n2' },
    // External policy Local without an external address counts for the port, but not for the Service …
    'a/quirk': { ports: { p: 'eL' }, endpoints: '1R@n1' },
    // … unless the cluster IP is under policy Local.
    'a/inside': { ports: { p: 'iL eL' }, endpoints: '1R@n2' },
    'a/here': { ports: { p: 'iL eL np' }, endpoints: '1R@n1' },
    'a/nothing': { ports: { p: 'iL eL np' }, endpoints: '1X@n2' },
  };
  await planner.apply('all', input(world), here, timeSlice());
  assert.deepEqual(counts(), [
    { internal: 3, external: 4 },
    { internal: 2, external: 2 },
  ]);
  world['a/both'] = { ports: { p: 'iL eL np' }, endpoints: '1T@n1 2R@n2' };
  delete world['a/quirk'];
  delete world['a/inside'];
  await planner.apply(['a/both', 'a/quirk', 'a/inside'], input(world), here, timeSlice());
  assert.deepEqual(counts(), [
    { internal: 0, external: 0 },
    { internal: 0, external: 0 },
  ]);
});

test('a Service whose external IPs are switched off does not count as one without local endpoints', async () => {
  const planner = new Planner();
  const world = input({ 'a/x': { ports: { p: 'eL xip' }, endpoints: '1R@n2' } });
  await planner.apply('all', world, here, timeSlice());
  assert.equal(planner.servicesWithoutLocalEndpoints.external, 1);
  await planner.apply('all', world, { ...here, allowExternalIPs: false }, timeSlice());
  assert.equal(planner.servicesWithoutLocalEndpoints.external, 0);
});

/** Every read of the monotonic time advances it by one millisecond. */
class TickingClock extends FakeClock {
  #ms = 0;

  override monotonic(): number {
    return this.#ms++;
  }
}

class CountedSlice extends TimeSlice {
  yields = 0;

  override yield(): Promise<void> {
    this.yields++;
    return super.yield();
  }
}

test('planning that yields to the event loop gives the same plans as planning in one go', async () => {
  const world: World = {};
  for (let i = 0; i < 1_200; i++) world[`a/s${i}`] = { ports: { p: '' }, endpoints: '1R@n1' };
  const planner = new Planner();
  const counted = new CountedSlice(new TickingClock(), 400);
  const keys = await planner.apply('all', input(world), here, counted);
  assert.equal(counted.yields, 3);
  assert.equal(keys.size, 1_200);
  assert.deepEqual(sorted(await planner.apply('all', input(world), here, timeSlice())), []);
});

test('a service port with too many endpoints for its hash is a shortfall until some of them leave', async () => {
  const planner = new Planner();
  const port = servicePort({ clusterIP: '10.96.9.9', balance: 'hash' });
  const name = `${port.namespace}/${port.name}`;
  const shortfalls = async (count: number, ports: readonly ServicePort[] = [port]) => {
    const all = Array.from({ length: count }, (_, i) => endpoint({ ip: `10.244.${i >> 8}.${i & 255}` }));
    const service = { ports, endpoints: () => all.toSorted((a, b) => (a.id < b.id ? -1 : 1)) };
    await planner.apply('all', { serviceNames: () => [name], service: () => service }, here, timeSlice());
    return [...planner.shortfalls()].map(({ key, error }) => `${key}: ${error.message}`);
  };
  assert.deepEqual(await shortfalls(120), []);
  assert.deepEqual(await shortfalls(121), [
    `${port.key}: it has more than 120 endpoints, too many for the hash that the Service asks for; endpoints are chosen as usual`,
  ]);
  assert.equal(planner.plans.get(port.key)?.balance, 'default');
  assert.deepEqual(await shortfalls(120), []);
  assert.equal((await shortfalls(121)).length, 1);
  assert.deepEqual(await shortfalls(121, [{ ...port, balance: 'default' }]), []);
  assert.equal((await shortfalls(121)).length, 1);
  assert.deepEqual(await shortfalls(121, []), []);
});
