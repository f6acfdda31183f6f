import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { packNames, podName, unpackNames } from './pod-names.ts';

test('packed names come back in their order, with an empty one for each that is missing', () => {
  const name = fc.oneof(fc.string({ maxLength: 317 }), fc.constantFrom(undefined, '', 'web-1', 'web-12'));
  fc.assert(
    fc.property(fc.array(name), (names) => {
      const packed = packNames(names);
      const wanted = names.map((one) => one ?? '');
      if (packed === undefined) assert.ok(wanted.every((one) => one === ''));
      else assert.deepEqual(unpackNames(packed), wanted);
    }),
  );
});

test('names of pods of one ReplicaSet take little more than their last part', () => {
  const names = ['x2x9k', 'b7vqp', 'zk4tn', '9d8fw'].map((end) => `checkout-7d4b9c5f6d-${end}`);
  assert.equal(packNames(names)?.length, 'checkout-7d4b9c5f6d-'.length + 4 * (2 + 5));
});

test('a name that is too long for Kubernetes is left out', () => {
  const packed = packNames(['web-1', 'x'.repeat(318), 'web-2']);
  assert.deepEqual(packed === undefined ? [] : unpackNames(packed), ['web-1', '', 'web-2']);
});

test('no names need no string', () => {
  assert.equal(packNames([]), undefined);
  assert.equal(packNames([undefined, '']), undefined);
});

test('the name of a pod has its namespace only when that is another one', () => {
  const pod = { kind: 'Pod', namespace: 'shop', name: 'web-1' };
  assert.equal(podName(pod, 'shop'), 'web-1');
  assert.equal(podName({ ...pod, namespace: '' }, 'shop'), 'web-1');
  assert.equal(podName(pod, 'other'), 'shop/web-1');
  assert.equal(podName({ ...pod, name: '' }, 'other'), '');
  assert.equal(podName({ ...pod, kind: 'Node' }, 'shop'), '');
});
