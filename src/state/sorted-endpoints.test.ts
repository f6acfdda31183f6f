import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { endpoints, numbers } from '../../test/cluster/objects.ts';
import { byId, findEndpoint, mergeLists, noEndpoints, patchList, sortUnique } from './sorted-endpoints.ts';

test('endpoints are sorted byte-wise by ip:port', () => {
  assert.equal(numbers(sortUnique(endpoints('1R@ 2R@ 10R@ 11R@ 100R@').toReversed())), '100 10 11 1 2');
});

test('of several records for one endpoint, the last that is not terminating wins', () => {
  const winner = (shorthand: string) => {
    const records = shorthand
      .split(' ')
      .flatMap((text, i) => endpoints(text).map((record) => ({ ...record, zoneHints: [`${i}`] })));
    const list = sortUnique(records);
    assert.equal(list.length, 1);
    return list[0]?.zoneHints?.[0];
  };
  assert.equal(winner('1T@ 1R@'), '1', 'not terminating beats terminating');
  assert.equal(winner('1R@ 1T@'), '0', 'in any order');
  assert.equal(winner('1R@ 1R@'), '1', 'the last of those not terminating');
  assert.equal(winner('1T@ 1T@ 1Z@'), '0', 'the first of those terminating');
  assert.equal(winner('1R@ 1X@'), '1', 'not ready is not terminating');
  assert.equal(winner('1T@ 1R@ 1T@ 1X@ 1T@'), '3');
});

test('a merge of one list returns that list', () => {
  const list = endpoints('1R@ 2R@');
  assert.equal(mergeLists([list]), list);
  assert.equal(mergeLists([]), noEndpoints);
});

test('endpoints are found by bisection', () => {
  const list = sortUnique(endpoints('1R@ 2R@ 10R@'));
  for (const endpoint of list) assert.equal(findEndpoint(list, endpoint.id), endpoint);
  assert.equal(findEndpoint(list, '10.1.0.3:80'), undefined);
  assert.equal(findEndpoint(noEndpoints, '10.1.0.3:80'), undefined);
});

const numbersOf = (max: number) => fc.uniqueArray(fc.nat(max), { maxLength: 30 });
const build = (ids: readonly number[]) => sortUnique(endpoints(ids.map((n) => `${n}R@`).join(' ')));

test('a patch equals a merge, or returns undefined when ids collide', () => {
  fc.assert(
    fc.property(numbersOf(60), numbersOf(60), fc.func(fc.boolean()), (old, more, isRemoved) => {
      const list = build(old);
      const removed = list.filter((endpoint) => isRemoved(endpoint.id));
      const added = build(more).toReversed();
      const rest = list.filter((endpoint) => !removed.includes(endpoint));
      const collides = rest.some((endpoint) => added.some((other) => other.id === endpoint.id));
      const patched = patchList(list, removed.toReversed(), added);
      if (collides) assert.equal(patched, undefined);
      else assert.deepEqual(patched, [...rest, ...added].sort(byId));
      assert.deepEqual(list, build(old), 'the list itself stays as it was');
    }),
  );
});

test('a patch returns undefined for large changes', () => {
  const many = sortUnique(Array.from({ length: 300 }, (_, i) => endpoints(`${i}R@`)).flat());
  assert.equal(patchList(build([1]), [], many), undefined);
});

test('a patch returns undefined for two added records of one id', () => {
  assert.equal(patchList(build([1]), [], [...build([5]), ...build([5])]), undefined);
});
