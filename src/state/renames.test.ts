import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Renames } from './renames.ts';
import type { SliceEntry } from './slice-entry.ts';

/** A version of a slice. */
function version(name: string): SliceEntry {
  const object = {
    namespace: 'a',
    name,
    resourceVersion: '',
    serviceName: 'web',
    addressType: 'IPv4',
    endpoints: [],
    ports: [],
  };
  return { object, lists: [] };
}

test('what is held of a Service is joined with later changes; slice versions that came and went in between are skipped', () => {
  const renames = new Renames();
  const [one, two, three, other] = [version('x'), version('x'), version('x'), version('y')];
  assert.deepEqual(renames.joined('a/web', { slices: { removed: [one], added: [two] } }), {
    slices: { removed: [one], added: [two] },
  });
  renames.hold('a/web', { slices: { removed: [one], added: [two] } });
  const joined = renames.joined('a/web', { ports: [], slices: { removed: [two], added: [three, other] } });
  assert.deepEqual(joined.ports, []);
  assert.ok(joined.slices?.removed.every((slice) => slice === one));
  assert.equal(joined.slices?.removed.length, 1);
  assert.ok(joined.slices?.added[0] === three && joined.slices.added[1] === other);
  assert.equal(joined.slices?.added.length, 2);
});

test('a change waits for a second from the first time that it is asked about, and later changes do not prolong that', () => {
  const renames = new Renames();
  renames.hold('a/web', { ports: [] });
  assert.deepEqual(renames.takeOverdue(5_000), []);
  assert.equal(renames.dueAt, 6_000);
  renames.hold('a/web', { ports: [], slices: { removed: [], added: [version('x')] } });
  assert.deepEqual([renames.services, renames.slices], [1, 1]);
  assert.deepEqual(renames.takeOverdue(5_999), []);
  assert.equal(renames.takeOverdue(6_000).length, 1);
  assert.equal(renames.dueAt, undefined);
});

test('without a time nothing waits', () => {
  const renames = new Renames();
  renames.hold('a/web', { ports: [] });
  assert.equal(renames.takeOverdue(undefined).length, 1);
  assert.equal(renames.dueAt, undefined);
});
