import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { endpoints, service, slice } from '../../test/cluster/objects.ts';
import type { EndpointSliceObject } from '../model/objects.ts';
import { absenceMs, Departures, departedMs, maxDeparted } from './departures.ts';
import { FamilyState } from './family-state.ts';
import type { SliceEntry } from './slice-entry.ts';

class Fixture {
  readonly problems: string[] = [];
  now = 0;
  readonly state: FamilyState;

  constructor(resetDeparted: 'off' | 'tcp' | 'impossible' = 'tcp') {
    this.state = new FamilyState({
      family: 'IPv4',
      nodeName: 'n1',
      startTime: 0,
      defaults: { resetDeparted },
      onProblem: ({ name, field, value, fault }) => this.problems.push(`${name} ${field} ${value} ${fault}`),
    });
  }

  slice(name: string, shorthand: string, fields: Partial<EndpointSliceObject> = {}): void {
    this.state.updateSlice(slice(name, shorthand, fields), false);
  }

  remove(name: string): void {
    this.state.updateSlice(slice(name, ''), true);
  }

  /** The last numbers of the departed addresses after a sync at this time. */
  departed(now: number): string {
    this.now = now;
    this.state.acknowledge(this.state.takeDelta());
    return [...this.state.departed(now).values()].map(({ ip }) => ip.split('.').at(-1)).join(' ');
  }
}

describe('an endpoint', () => {
  test('departs when no slice has named it for a second, for ten minutes', () => {
    const fixture = new Fixture();
    fixture.state.updateService(undefined, service());
    fixture.slice('s', '1R@n1 2R@n2');
    assert.equal(fixture.departed(0), '');
    assert.equal(fixture.state.departedDueAt, undefined);
    fixture.slice('s', '1R@n1', { resourceVersion: '2' });
    assert.equal(fixture.departed(100), '');
    assert.equal(fixture.state.departedDueAt, 100 + absenceMs);
    assert.equal(fixture.departed(100 + absenceMs), '2');
    const end = 100 + absenceMs + departedMs;
    assert.equal(fixture.state.departedDueAt, end);
    assert.equal(fixture.departed(end - 1), '2');
    assert.equal(fixture.departed(end), '');
    assert.equal(fixture.state.departedDueAt, undefined);
  });

  test('does not depart while it drains, is not ready, or moves to another slice', () => {
    const fixture = new Fixture();
    fixture.state.updateService(undefined, service());
    fixture.slice('s', '1R@n1 2R@n1 3R@n1 4R@n1');
    fixture.departed(0);
    fixture.slice('s', '1T@n1 2X@n1 3Z@n1', { resourceVersion: '2' });
    assert.equal(fixture.departed(100), '');
    fixture.slice('other', '4R@n1');
    assert.equal(fixture.departed(100 + absenceMs), '');
    assert.equal(fixture.departed(100 + 2 * absenceMs), '');
  });

  test('that comes back is off the list with the same sync, also for a Service that did not ask', () => {
    const fixture = new Fixture('off');
    fixture.state.updateService(undefined, service({ annotations: { 'reset-departed': 'tcp' } }));
    fixture.slice('s', '1R@n1');
    fixture.departed(0);
    fixture.remove('s');
    fixture.departed(1);
    assert.equal(fixture.departed(1 + absenceMs), '1');
    fixture.slice('x', '1X@n1', { serviceName: 'headless' });
    assert.equal(fixture.departed(2 + absenceMs), '');
  });

  test('of a Service that does not ask, or asks not to, does not depart', () => {
    for (const [flag, annotation] of [
      ['off', undefined],
      ['tcp', 'off'],
      ['impossible', 'tcp'],
    ] as const) {
      const fixture = new Fixture(flag);
      fixture.state.updateService(
        undefined,
        service(annotation ? { annotations: { 'reset-departed': annotation } } : {}),
      );
      fixture.slice('s', '1R@n1');
      fixture.departed(0);
      fixture.remove('s');
      fixture.departed(1);
      assert.equal(fixture.departed(10 * absenceMs), '');
    }
  });

  test('departs after its Service was deleted, by the wish that the Service had', () => {
    for (const [annotation, expected] of [
      [undefined, '1'],
      ['off', ''],
    ] as const) {
      const fixture = new Fixture();
      const web = service(annotation ? { annotations: { 'reset-departed': annotation } } : {});
      fixture.state.updateService(undefined, web);
      fixture.slice('s', '1R@n1');
      fixture.departed(0);
      fixture.state.updateService(web, undefined);
      fixture.departed(1);
      fixture.remove('s');
      fixture.departed(2);
      assert.equal(fixture.departed(2 + absenceMs), expected);
    }
  });

  test('counts as there for slices that came before the first Service that asks', () => {
    const fixture = new Fixture('off');
    fixture.slice('x', '1R@n1', { serviceName: 'other' });
    fixture.departed(0);
    fixture.state.updateService(undefined, service({ annotations: { 'reset-departed': 'tcp' } }));
    fixture.slice('s', '1R@n1 2R@n1');
    fixture.departed(1);
    fixture.remove('s');
    fixture.departed(2);
    assert.equal(fixture.departed(2 + absenceMs), '2');
  });
});

test('a wrong annotation is reported with its value and ignored; one that the mode cannot do is reported', () => {
  const wrong = new Fixture('tcp');
  wrong.state.updateService(undefined, service({ annotations: { 'reset-departed': 'udp' } }));
  wrong.slice('s', '1R@n1');
  wrong.departed(0);
  wrong.remove('s');
  wrong.departed(1);
  assert.equal(wrong.departed(1 + absenceMs), '1');
  const field = 'metadata.annotations["kube-proxy-ts.dev/reset-departed"]';
  assert.deepEqual(wrong.problems, [`web ${field} udp is neither off nor tcp`]);
  const impossible = new Fixture('impossible');
  impossible.state.updateService(undefined, service({ annotations: { 'reset-departed': 'tcp' } }));
  assert.deepEqual(impossible.problems, [
    `web ${field} tcp is not possible in this proxy mode; the Service is served without it`,
  ]);
});

test('the list has a maximum: the earliest leave it first', () => {
  const departures = new Departures();
  departures.activate([]);
  const entry = (from: number, count: number): SliceEntry => ({
    object: slice('s', ''),
    lists: Array.from({ length: count }, (_, i) => ({
      portName: 'http',
      protocol: 'TCP',
      endpoints: endpoints('1R@n1', from + i),
    })),
  });
  for (const part of [entry(1, 1), entry(2, maxDeparted)]) {
    departures.add(part);
    departures.remove(part, true);
    departures.settle(0);
    departures.settle(absenceMs);
  }
  assert.equal(departures.current.size, maxDeparted);
  assert.ok(!departures.current.has('10.1.0.1:1'));
  assert.ok(departures.current.has('10.1.0.1:2'));
});

/** Any sequence of slice changes of three Services: the second asks for nothing, the third has no cluster IP. */
const services = ['web', 'silent', 'headless'] as const;
const anyStep = fc.oneof(
  fc.record({
    kind: fc.constant('slice' as const),
    service: fc.constantFrom(...services),
    slice: fc.constantFrom('p', 'q'),
    endpoints: fc.uniqueArray(fc.integer({ min: 1, max: 3 })),
    state: fc.constantFrom('R', 'T', 'X', 'Z', 'S'),
    isRemoved: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('sync' as const), ms: fc.constantFrom(0, 1, 500, absenceMs, departedMs) }),
);

test('whatever slices do, no endpoint that a slice names is ever departed, and all others that were asked for are', () => {
  const property = fc.property(fc.array(anyStep, { maxLength: 60, size: 'max' }), (steps) => {
    const fixture = new Fixture();
    fixture.state.updateService(undefined, service());
    fixture.state.updateService(
      undefined,
      service({ name: 'silent', annotations: { 'reset-departed': 'off' } }),
    );
    fixture.departed(0);
    const slices = new Map<string, { readonly service: string; readonly endpoints: readonly number[] }>();
    /** Endpoints that the Service named in a sync. */
    const asked = new Set<number>();
    /** When each endpoint was first missing. */
    const missing = new Map<number, number>();
    /** Endpoints that were missing for so long that the list may have forgotten them. */
    const old = new Set<number>();
    let version = 1;
    for (const step of steps) {
      if (step.kind === 'slice') {
        const name = `${step.service}-${step.slice}`;
        const object = slice(name, step.endpoints.map((n) => `${n}${step.state}@n1`).join(' '), {
          serviceName: step.service,
          resourceVersion: String(++version),
        });
        fixture.state.updateSlice(object, step.isRemoved);
        if (step.isRemoved) slices.delete(name);
        else slices.set(name, { service: step.service, endpoints: step.endpoints });
        continue;
      }
      const departed = fixture.departed(fixture.now + step.ms);
      const list = departed === '' ? [] : departed.split(' ').map(Number);
      const named = new Set([...slices.values()].flatMap((one) => one.endpoints));
      for (const n of named) {
        assert.ok(!list.includes(n), `${n} is there`);
        missing.delete(n);
      }
      for (const n of asked) {
        if (named.has(n)) continue;
        const since = missing.get(n) ?? fixture.now;
        missing.set(n, since);
        const age = fixture.now - since;
        if (age < absenceMs) assert.ok(!list.includes(n), `${n} may come back`);
        else if (age < departedMs) assert.ok(list.includes(n), `${n} is gone since ${since}`);
        else if (asked.delete(n)) old.add(n);
      }
      for (const one of slices.values()) {
        if (one.service === 'web') for (const n of one.endpoints) asked.add(n);
      }
      // An endpoint that only others name afterwards departs only if it had been asked for.
      for (const n of list) assert.ok(asked.has(n) || old.has(n), `nobody asked for ${n}`);
    }
  });
  fc.assert(property, { numRuns: 1000 });
});
