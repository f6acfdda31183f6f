import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { EndpointSliceObject, ServiceObject } from '../../src/model/objects.ts';
import type { PlanContext } from '../../src/plan/plan.ts';
import { Planner } from '../../src/plan/planner.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { FamilyState } from '../../src/state/family-state.ts';
import type { Delta } from '../../src/state/ledger.ts';
import { planContext, serviceObject, sliceObject } from './arbitraries.ts';
import { portsOf } from './state-queries.ts';
import { timeSlice } from './time-slice.ts';

type Step =
  | { readonly kind: 'service'; readonly object: ServiceObject; readonly removed: boolean }
  | { readonly kind: 'slice'; readonly object: EndpointSliceObject; readonly removed: boolean }
  | { readonly kind: 'take'; readonly context: PlanContext }
  | { readonly kind: 'acknowledge'; readonly which: number };

const removed = fc.integer({ min: 0, max: 3 }).map((n) => n === 0);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('service'), object: serviceObject, removed }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('slice'), object: sliceObject, removed }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('take'), context: planContext }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('acknowledge'), which: fc.nat(3) }) },
);
// By default fast-check makes about ten steps, too few for slices to overlap and to separate again.
const steps = fc.array(step, { maxLength: 60, size: 'max' });

/** The ports and endpoints of each Service as text, to compare two moments. */
type View = ReadonlyMap<string, string>;

/** A state under test that gets one step after the other, and the objects that it should hold. */
class World {
  readonly state = newState();
  readonly planner = new Planner();
  readonly #services = new Map<string, ServiceObject>();
  readonly #slices = new Map<string, EndpointSliceObject>();
  #time = 0;
  /** Every trigger time that was not in an acknowledged delta. */
  times: { service: string; time: number; sequence: number | undefined }[] = [];

  service({ object, removed }: Step & { kind: 'service' }): void {
    const previous = this.#services.get(object.name);
    if (removed) this.#services.delete(object.name);
    else this.#services.set(object.name, object);
    this.state.updateService(previous, removed ? undefined : object);
  }

  slice({ object, removed }: Step & { kind: 'slice' }): void {
    const known = this.#slices.get(object.name);
    const isOurs = object.addressType === 'IPv4' && object.serviceName !== '';
    if (removed || !isOurs) this.#slices.delete(object.name);
    else this.#slices.set(object.name, object);
    const time = ++this.#time * 1000;
    const stamped = { ...object, triggerTime: new Date(time).toISOString() };
    this.state.updateSlice(stamped, removed);
    const isMoved = known !== undefined && known.serviceName !== object.serviceName;
    if (known && (removed || !isOurs || isMoved)) {
      this.times = this.times.filter(({ service }) => service !== `a/${known.serviceName}`);
    }
    if (!removed && isOurs)
      this.times.push({ service: `a/${object.serviceName}`, time, sequence: undefined });
  }

  /** Without `now`, nothing waits for the other half of a rename. */
  async take(context: PlanContext, now?: number): Promise<{ delta: Delta; keys: ReadonlySet<string> }> {
    const delta = this.state.takeDelta(now);
    for (const entry of this.times) entry.sequence ??= delta.sequence;
    return { delta, keys: await this.planner.apply(delta.changed, this.state, context, timeSlice()) };
  }

  acknowledge(delta: Delta): void {
    this.state.acknowledge(delta);
    this.times = this.times.filter(({ sequence }) => sequence === undefined || sequence > delta.sequence);
  }

  /** A new state that gets the same objects all at once and in reverse order. */
  rebuilt(): FamilyState {
    const state = newState();
    for (const object of [...this.#slices.values()].toReversed()) state.updateSlice(object, false);
    for (const object of [...this.#services.values()].toReversed()) state.updateService(undefined, object);
    state.takeDelta();
    return state;
  }
}

function newState(): FamilyState {
  return new FamilyState({ family: 'IPv4', nodeName: 'n1', startTime: 0, onProblem: () => {} });
}

function viewOf(state: FamilyState): View {
  const views = new Map<string, string>();
  for (const name of state.serviceNames()) {
    const service = state.service(name);
    const ports = (service?.ports ?? []).map((port) => ({ port, endpoints: service?.endpoints(port) }));
    views.set(name, JSON.stringify(ports));
  }
  return views;
}

test('planning change by change gives the same plans as planning everything at once', async () => {
  await fc.assert(
    fc.asyncProperty(steps, planContext, async (steps, last) => {
      const world = new World();
      for (const step of [...steps, { kind: 'take', context: last } as const]) {
        if (step.kind === 'service') world.service(step);
        if (step.kind === 'slice') world.slice(step);
        if (step.kind !== 'take') continue;
        const before = new Map(world.planner.plans);
        const { delta, keys } = await world.take(step.context);
        world.acknowledge(delta);
        await assertSame(world, step.context);
        for (const key of new Set([...before.keys(), ...world.planner.plans.keys()])) {
          assert.equal(keys.has(key), before.get(key) !== world.planner.plans.get(key), key);
        }
      }
    }),
    { numRuns: 200 },
  );
});

async function assertSame(world: World, context: PlanContext): Promise<void> {
  const fresh = world.rebuilt();
  const planner = new Planner();
  await planner.apply('all', fresh, context, timeSlice());
  const { state } = world;
  assert.deepEqual(portsOf(state), portsOf(fresh));
  assert.equal(state.totalEndpoints, fresh.totalEndpoints);
  assert.deepEqual(new Map(state.healthCheckPorts()), new Map(fresh.healthCheckPorts()));
  assert.deepEqual(new Map(state.localReadyCounts()), new Map(fresh.localReadyCounts()));
  assert.deepEqual(new Set(state.serviceNames()), new Set(fresh.serviceNames()));
  assert.deepEqual(planner.noLocalEndpoints, world.planner.noLocalEndpoints);
  assert.deepEqual(planner.servicesWithoutLocalEndpoints, world.planner.servicesWithoutLocalEndpoints);
  assert.deepEqual([...world.planner.plans.keys()].sort(), [...planner.plans.keys()].sort());
  for (const [key, plan] of planner.plans) {
    assert.equal(describe(world.planner.plans.get(key)), describe(plan), key);
  }
}

/** All of a plan with its reasons, but without its context: the zone may be out of date when no endpoint has hints. */
function describe(plan: ServicePlan | undefined): string {
  return JSON.stringify(plan, (key, value: unknown) => (key === 'context' ? undefined : value));
}

/** The same step with another name for a port. */
function renamed(step: Step): Step {
  if (step.kind !== 'service' && step.kind !== 'slice') return step;
  const rename = <T extends { readonly name?: string | undefined }>(port: T): T =>
    port.name === 'http' ? { ...port, name: 'web' } : port;
  if (step.kind === 'service') {
    const ports = step.object.ports.map(rename);
    return { ...step, object: { ...step.object, ports } };
  }
  const { object } = step;
  const ports = object.ports.map(rename);
  return { ...step, object: { ...object, ports, resourceVersion: `${object.resourceVersion}-renamed` } };
}

test('what waits for the other half of a rename is planned in the end', async () => {
  const mixed = fc.array(
    fc.tuple(step, fc.boolean()).map(([step, isRenamed]) => (isRenamed ? renamed(step) : step)),
    { maxLength: 60, size: 'max' },
  );
  await fc.assert(
    fc.asyncProperty(mixed, planContext, async (steps, last) => {
      const world = new World();
      let now = 0;
      for (const step of steps) {
        now += 250;
        if (step.kind === 'service') world.service(step);
        if (step.kind === 'slice') world.slice(step);
        if (step.kind !== 'take') continue;
        const { delta } = await world.take(step.context, now);
        world.acknowledge(delta);
        const due = world.state.renameDueAt;
        assert.ok(due === undefined || (due > now && due <= now + 1_000));
      }
      // One takes up what is pending and may wait, the other one comes when that is overdue.
      await world.take(last, now);
      await world.take(last, now + 1_000);
      assert.equal(world.state.renameDueAt, undefined);
      await assertSame(world, last);
    }),
    { numRuns: 200 },
  );
});

test('failed syncs lose no change and no trigger time', async () => {
  await fc.assert(
    fc.asyncProperty(steps, planContext, async (steps, context) => {
      const world = new World();
      const taken: { delta: Delta; view: View }[] = [];
      let programmed: View = new Map();
      let programmedUpTo = 0;
      for (const step of [...steps, { kind: 'take', context } as const]) {
        if (step.kind === 'service') world.service(step);
        if (step.kind === 'slice') world.slice(step);
        if (step.kind === 'take') {
          const { delta } = await world.take(step.context);
          const view = viewOf(world.state);
          assertNothingLost(delta, programmed, view);
          assert.deepEqual(
            timesOf(delta),
            world.times.map(({ service, time }) => `${service} ${time}`).sort(),
          );
          taken.push({ delta, view });
        }
        if (step.kind === 'acknowledge') {
          const sync = taken.at(-1 - step.which);
          if (!sync) continue;
          world.acknowledge(sync.delta);
          if (sync.delta.sequence <= programmedUpTo) continue;
          programmedUpTo = sync.delta.sequence;
          programmed = sync.view;
        }
      }
    }),
    { numRuns: 200 },
  );
});

function assertNothingLost(delta: Delta, programmed: View, view: View): void {
  for (const name of new Set([...programmed.keys(), ...view.keys()])) {
    if (programmed.get(name) === view.get(name)) continue;
    assert.ok(delta.changed.has(name), `${name} is not in the delta`);
  }
}

function timesOf(delta: Delta): string[] {
  return [...delta.triggerTimes]
    .flatMap(([service, times]) => times.map((time) => `${service} ${time}`))
    .sort();
}
