import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { identityOf, makeOnce } from './made-once.ts';

test('an image is made again when its recipe changed or another program, also an older one, took its place', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-made-once-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [file, program] = [join(directory, 'image.tar'), join(directory, 'program')];
  let made = 0;
  const make = (command: readonly string[]): number => {
    makeOnce(file, { command, from: identityOf(program) }, () => writeFileSync(file, `${++made}`));
    return made;
  };
  writeFileSync(program, 'new');
  assert.equal(make([]), 1);
  assert.equal(make([]), 1);
  assert.equal(make(['pause']), 2);
  writeFileSync(program, 'old');
  utimesSync(program, 1_000, 1_000);
  assert.equal(make(['pause']), 3);
});
