import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { packEnd, packFile, unpack } from './tar.ts';

function pathIn(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-tar-'));
  t.after(() => rmSync(directory, { recursive: true }));
  return join(directory, 'a.tar.gz');
}

test('files of any length come back as they were packed', async (t) => {
  const path = pathIn(t);
  const contents = [0, 1, 511, 512, 513, 300_000].map((length) => 'ü'.repeat(length).slice(0, length));
  const packed: Buffer[] = [];
  for (const [i, text] of contents.entries()) {
    const { bytes, length } = await packFile(`files/${i}.txt`, [text.slice(0, 100), text.slice(100)], 0);
    assert.equal(length, Buffer.byteLength(text));
    packed.push(bytes);
  }
  writeFileSync(path, Buffer.concat([...packed, packEnd()]));
  const files = await unpack(path, (name) => name !== 'files/2.txt');
  assert.deepEqual(
    [...files.keys()],
    ['files/0.txt', 'files/1.txt', 'files/3.txt', 'files/4.txt', 'files/5.txt'],
  );
  assert.equal(files.get('files/5.txt'), contents[5]);
});

test('an archive that is cut off, no archive, or absent is an error', async (t) => {
  const path = pathIn(t);
  await assert.rejects(
    unpack(path, () => true),
    /ENOENT/,
  );
  const { bytes } = await packFile('a', ['text'], 0);
  writeFileSync(path, bytes);
  await assert.rejects(
    unpack(path, () => true),
    /ends too early/,
  );
  writeFileSync(path, bytes.subarray(0, -5));
  await assert.rejects(
    unpack(path, () => true),
    /unexpected end of file/,
  );
  writeFileSync(path, 'text');
  await assert.rejects(
    unpack(path, () => true),
    /incorrect header check/,
  );
});

test('a source that fails while it is read rejects, so that no half file is packed', async () => {
  async function* failing() {
    yield 'some';
    throw new Error('gone');
  }
  await assert.rejects(packFile('a', failing(), 0), /gone/);
});
