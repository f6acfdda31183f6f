import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTogether } from './open-together.ts';

test('things that were opened together are closed together, in this order', async () => {
  const closed: string[] = [];
  const thing = (name: string) => ({ name, close: () => void closed.push(name) });
  const { a, b, close } = await openTogether((keep, close) => ({
    a: keep(thing('a')),
    b: keep(thing('b')),
    close,
  }));
  assert.deepEqual([a.name, b.name, closed], ['a', 'b', []]);
  close();
  assert.deepEqual(closed, ['a', 'b']);
});

test('when one thing cannot be opened, those before it are closed', async () => {
  let closed = 0;
  const opening = openTogether(async (keep) => {
    keep({ close: () => void closed++ });
    throw new Error('no more files');
  });
  await assert.rejects(opening, /no more files/);
  assert.equal(closed, 1);
});
