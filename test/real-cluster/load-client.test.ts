import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sourcePortAt, sourcePorts } from './load-client.ts';

test('a load continues with the source ports behind those of the load before, and begins again after the last', () => {
  const { first, count } = sourcePorts;
  assert.equal(sourcePortAt(first, 0), first);
  assert.equal(sourcePortAt(first, 1_500), first + 1_500);
  assert.equal(sourcePortAt(first + count - 1, 1), first);
});
