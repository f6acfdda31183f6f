import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeProblem } from '../model/object-problem.ts';
import type { ServiceCIDRObject } from '../model/objects.ts';
import { ServiceCIDRs } from './service-cidrs.ts';

const object = (name: string, ...cidrs: string[]): ServiceCIDRObject => ({
  name,
  resourceVersion: '1',
  cidrs,
});

function empty(): { cidrs: ServiceCIDRs; problems: string[] } {
  const problems: string[] = [];
  return { cidrs: new ServiceCIDRs((problem) => problems.push(describeProblem(problem))), problems };
}

test('CIDRs are split by family, canonical, sorted and without duplicates', () => {
  const { cidrs, problems } = empty();
  assert.equal(cidrs.update(undefined, object('b', '10.112.1.1/12', 'FD00:96::/108')), true);
  assert.equal(cidrs.update(undefined, object('a', '10.096.0.0/16', '10.112.0.0/12')), true);
  assert.deepEqual(cidrs.of('IPv4'), ['10.112.0.0/12', '10.96.0.0/16']);
  assert.deepEqual(cidrs.of('IPv6'), ['fd00:96::/108']);
  assert.deepEqual(problems, []);
});

test('a CIDR that two objects list stays when one of them is deleted', () => {
  const { cidrs } = empty();
  const a = object('a', '10.96.0.0/16');
  const b = object('b', '10.96.0.0/16');
  assert.equal(cidrs.update(undefined, a), true);
  assert.equal(cidrs.update(undefined, b), false);
  assert.equal(cidrs.update(a, undefined), false);
  assert.deepEqual(cidrs.of('IPv4'), ['10.96.0.0/16']);
  assert.equal(cidrs.update(b, undefined), true);
  assert.deepEqual(cidrs.of('IPv4'), []);
});

test('an update replaces the CIDRs of the object, regardless of the given previous version', () => {
  const { cidrs } = empty();
  cidrs.update(undefined, object('a', '10.96.0.0/16'));
  assert.equal(cidrs.update(undefined, object('a', '10.97.0.0/16')), true);
  assert.deepEqual(cidrs.of('IPv4'), ['10.97.0.0/16']);
});

test('a resync changes nothing and returns the same arrays', () => {
  const { cidrs } = empty();
  const a = object('a', '10.96.0.0/16');
  cidrs.update(undefined, a);
  const before = cidrs.of('IPv4');
  assert.equal(cidrs.update(a, a), false);
  assert.equal(cidrs.of('IPv4'), before);
  assert.equal(cidrs.update(undefined, undefined), false);
});

test('a bad CIDR is ignored and reported', () => {
  const { cidrs, problems } = empty();
  assert.equal(cidrs.update(undefined, object('a', '10.96.0.0', '10.97.0.0/16')), true);
  assert.deepEqual(cidrs.of('IPv4'), ['10.97.0.0/16']);
  assert.deepEqual(problems, ['ServiceCIDR a: spec.cidrs[0]: "10.96.0.0" is not a CIDR']);
});
