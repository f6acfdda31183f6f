import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ObjectProblem } from '../model/object-problem.ts';
import { silentLogger } from '../obs/log.ts';
import { SetAside } from './set-aside.ts';

const badRange: ObjectProblem = {
  kind: 'Service',
  namespace: 'shop',
  name: 'web',
  field: 'spec.loadBalancerSourceRanges[0]',
  value: 'bogus',
  fault: 'is not a CIDR',
};

function harness() {
  const announced: string[] = [];
  const setAside = new SetAside({
    announce: ({ kind, namespace, name }, text) => announced.push(`${kind} ${namespace}/${name} | ${text}`),
    logger: silentLogger,
  });
  const objects = () =>
    setAside.samples().map(({ labels }) => `${labels.ip_family} ${labels.reason} ${labels.object}`);
  return { setAside, announced, objects };
}

test('a fault that both families find is announced once and listed for both', () => {
  const { setAside, announced, objects } = harness();
  setAside.reading(badRange, () => {
    setAside.report('IPv4', badRange);
    setAside.report('IPv6', badRange);
  });
  assert.deepEqual(announced, [
    'Service shop/web | Service shop/web: spec.loadBalancerSourceRanges[0]: "bogus" is not a CIDR',
  ]);
  assert.deepEqual(objects(), ['IPv4 invalid Service shop/web', 'IPv6 invalid Service shop/web']);
});

test('a fault that stays after an update is not announced again; a fault that is mended is forgotten', () => {
  const { setAside, announced, objects } = harness();
  for (let i = 0; i < 3; i++) setAside.reading(badRange, () => setAside.report('IPv4', badRange));
  assert.equal(announced.length, 1);
  setAside.reading(badRange, () => {});
  assert.deepEqual(objects(), []);
  setAside.reading(badRange, () => setAside.report('IPv4', badRange));
  assert.equal(announced.length, 2);
});

test('an object is listed with all its faults', () => {
  const { setAside } = harness();
  setAside.reading(badRange, () => {
    setAside.report('IPv4', badRange);
    setAside.report('IPv4', { ...badRange, field: 'spec.clusterIP', fault: 'is not an IP address' });
  });
  assert.deepEqual(setAside.objects(), [
    {
      family: 'IPv4',
      reason: 'invalid',
      object: 'Service shop/web',
      problems: [
        'Service shop/web: spec.loadBalancerSourceRanges[0]: "bogus" is not a CIDR',
        'Service shop/web: spec.clusterIP: "bogus" is not an IP address',
      ],
    },
  ]);
});

test('only refusals of the last sync are listed', () => {
  const { setAside, announced, objects } = harness();
  const refusal = { key: 'shop/web:http/TCP', error: new Error('ENOSPC') };
  setAside.refused('IPv4', [refusal]);
  setAside.refused('IPv4', [refusal]);
  assert.deepEqual(announced, ['Service shop/web | service port shop/web:http/TCP: ENOSPC']);
  assert.deepEqual(objects(), ['IPv4 refused shop/web:http/TCP']);
  setAside.refused('IPv4', []);
  assert.deepEqual(objects(), []);
});

test('Services that are not programmed are one problem; EndpointSlices are none', () => {
  const { setAside } = harness();
  setAside.report('IPv4', { ...badRange, kind: 'EndpointSlice', name: 'web-x' });
  assert.deepEqual(setAside.problems(), []);
  setAside.report('IPv4', badRange);
  setAside.report('IPv6', badRange);
  setAside.refused('IPv4', [{ key: 'shop/cart:http/TCP', error: new Error('no space') }]);
  const text = '2 objects not (fully) programmed; the reasons are below';
  assert.deepEqual(setAside.problems(), [{ kind: 'ObjectsNotProgrammed', isOutage: false, text }]);
});
