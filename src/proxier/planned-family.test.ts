import assert from 'node:assert/strict';
import { test } from 'node:test';
import { service, slice } from '../../test/cluster/objects.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import type { ObjectProblem } from '../model/object-problem.ts';
import { PlannedFamily } from './planned-family.ts';

const context = { nodeName: 'n1', zone: 'za', allowExternalIPs: true };

function planned(problems: ObjectProblem[] = []): PlannedFamily {
  return new PlannedFamily({
    family: 'IPv4',
    nodeName: 'n1',
    onProblem: (problem) => problems.push(problem),
    clock: new FakeClock(),
  });
}

test('PlannedFamily plans its objects only when plan() is called', async () => {
  const family = planned();
  family.updateService(undefined, service());
  family.updateSlice(slice('web-1', '1R@n1 2R@n2 3X@n2'), false);
  family.setServiceCIDRs(['10.96.0.0/16']);
  assert.equal(family.plans.size, 0);
  await family.plan(context);
  const [plan] = family.plans.values();
  assert.deepEqual(
    plan?.cluster.map(({ ip, isLocal }) => [ip, isLocal]),
    [
      ['10.1.0.1', true],
      ['10.1.0.2', false],
    ],
  );
  assert.deepEqual([family.totalEndpoints, family.serviceCIDRs], [3, ['10.96.0.0/16']]);
});

test('a change after plan() is in the next plan', async () => {
  const family = planned();
  family.updateService(undefined, service());
  await family.plan(context);
  family.updateSlice(slice('web-1', '1R@n1'), false);
  await family.plan(context);
  assert.equal([...family.plans.values()][0]?.cluster.length, 1);
  family.updateService(service(), undefined);
  await family.plan(context);
  assert.equal(family.plans.size, 0);
});

test('PlannedFamily reports problems of objects', () => {
  const problems: ObjectProblem[] = [];
  planned(problems).updateService(undefined, service({ loadBalancerSourceRanges: ['bogus'] }));
  assert.deepEqual(
    problems.map(({ value }) => value),
    ['bogus'],
  );
});
