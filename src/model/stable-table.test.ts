import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { maxStableEndpoints, stableSlots, stableTable } from './stable-table.ts';

const endpoint = fc
  .tuple(fc.nat(255), fc.nat(255), fc.integer({ min: 1, max: 65_535 }))
  .map(([a, b, port]) => `10.1.${a}.${b}:${port}`);

const endpoints = fc.uniqueArray(endpoint, { minLength: 1, maxLength: 60 }).map((ids) => ids.toSorted());

suite('a stable table', () => {
  test('gives every endpoint the same number of slots, but for a few', () => {
    fc.assert(
      fc.property(endpoints, (ids) => {
        const fair = stableSlots / ids.length;
        for (const count of countsOf(ids)) assert.ok(count >= Math.floor(fair) && count <= Math.ceil(fair));
      }),
    );
  });

  test('gives each of the most endpoints a slot', () => {
    const ids = Array.from({ length: maxStableEndpoints }, (_, i) => `10.1.0.${i}:80`).toSorted();
    assert.deepEqual([...new Set(countsOf(ids))].toSorted(), [4, 5]);
  });

  test('moves few slots between endpoints that stay when one leaves', () => {
    const shares = [2, 3, 5, 10, 20, 50].flatMap((count) => {
      const ids = Array.from({ length: count }, (_, i) => `10.1.${count}.${i}:80`).toSorted();
      return ids.map((leaving) => movedBy(ids, leaving) / stableSlots);
    });
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    assert.ok(mean < 0.05, `${mean} of all slots moved`);
  });

  test('is empty without endpoints', () => {
    assert.deepEqual(new Set(stableTable([])), new Set([0xffff]));
  });
});

function ownersOf(ids: readonly string[]): (string | undefined)[] {
  return Array.from(stableTable(ids), (index) => ids[index]);
}

/** Slots that an endpoint which stays has to give to another one. */
function movedBy(ids: readonly string[], leaving: string): number {
  const after = ownersOf(ids.filter((id) => id !== leaving));
  return ownersOf(ids).filter((id, slot) => id !== leaving && id !== after[slot]).length;
}

function countsOf(ids: readonly string[]): number[] {
  const counts = new Map(ids.map((id) => [id, 0]));
  for (const id of ownersOf(ids)) counts.set(id ?? '', (counts.get(id ?? '') ?? 0) + 1);
  return [...counts.values()];
}
