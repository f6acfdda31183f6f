import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { returnFreeMemory } from './free-memory.ts';
import { loadKoffi } from './koffi.ts';

/** Bytes of this process in memory that no file is behind. */
function anonymousBytes(): number {
  const kilobytes = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
  return Number(kilobytes) * 1024;
}

test('memory that was freed between blocks in use goes back to the kernel', {
  skip: process.platform !== 'linux' && 'needs Linux',
}, async (t) => {
  const library = (await loadKoffi()).load(null);
  const allocate = library.func('void *calloc(size_t count, size_t size)');
  const free = library.func('void free(void *block)');
  // Too small to be mapped on their own. Every eighth stays, so that the heap as a whole cannot shrink.
  const [block, count] = [32 << 10, 2_000];
  const blocks = Array.from({ length: count }, () => allocate(1, block));
  t.after(() => {
    for (const kept of blocks) if (kept !== undefined) free(kept);
  });
  const fill = library.func('void *memset(void *block, int value, size_t size)');
  for (const each of blocks) fill(each, 1, block);
  for (let i = 0; i < count; i++) {
    if (i % 8 === 0) continue;
    free(blocks[i]);
    blocks[i] = undefined;
  }
  const before = anonymousBytes();
  if (!(await returnFreeMemory())) return t.skip('the C library cannot return memory');
  assert.ok(before - anonymousBytes() > (count * block) / 2);
});
