import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createIntern, Interner } from './intern.ts';

test('intern returns an equal text', () => {
  const intern = createIntern(4);
  for (const text of ['', 'a', 'b', 'c', 'd', 'e', 'a', 'e']) assert.equal(intern(text), text);
});

test('a stream of unique strings stays within the limit and does not evict one in use', () => {
  const interner = new Interner(8);
  for (let i = 0; i < 1000; i++) {
    interner.intern(`unique-${i}`);
    assert.ok(i === 0 || interner.knows('node-a'));
    interner.intern('node-a');
    assert.ok(interner.size <= 8, `holds ${interner.size}`);
  }
  assert.ok(!interner.knows('unique-0'));
});
