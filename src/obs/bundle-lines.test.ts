import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { bundleLocator } from './bundle-lines.ts';

test('an offset in a bundle is located in the source of its line', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-lines-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const nowhere = 0xffff;
  const begins = Uint32Array.of(3, 0, 10, 25);
  const places = Uint16Array.of(nowhere, 0, 0, 7, 1, 40);
  const table = [Buffer.from(begins.buffer), Buffer.from(places.buffer), Buffer.from('a.ts\nb.ts')];
  writeFileSync(join(directory, 'program.lines'), Buffer.concat(table));
  const locate = bundleLocator(join(directory, 'program.js'));
  const offsets = [0, 9, 10, 24, 25, 1_000];
  const found = offsets.map((offset) => locate?.(offset));
  const [a, b] = [
    { file: 'a.ts', line: 7 },
    { file: 'b.ts', line: 40 },
  ];
  assert.deepEqual(found, [undefined, undefined, a, a, b, b]);
});

test('a table that is cut off locates nothing, and nothing is thrown', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-lines-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'program.lines');
  for (const table of [Uint32Array.of(), Uint32Array.of(1_000, 0, 10)]) {
    writeFileSync(path, Buffer.from(table.buffer));
    assert.equal(bundleLocator(join(directory, 'program.js'))?.(5), undefined);
  }
  // This one is cut off after it was opened.
  const whole = [Uint32Array.of(3, 0, 10, 25), Uint16Array.of(0, 7, 0, 8, 0, 9)].map(({ buffer }) =>
    Buffer.from(buffer),
  );
  writeFileSync(path, Buffer.concat([...whole, Buffer.from('a.ts')]));
  const locate = bundleLocator(join(directory, 'program.js'));
  assert.deepEqual(locate?.(5), { file: 'a.ts', line: 7 });
  writeFileSync(path, '');
  assert.equal(locate?.(30), undefined);
});

test('without a table no offset is located, and sources need no table', () => {
  assert.equal(bundleLocator('/nowhere/program.js')?.(5), undefined);
  assert.equal(bundleLocator('/nowhere/program.ts'), undefined);
});
