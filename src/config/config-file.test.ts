import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfigFile, writeConfigFile } from './config-file.ts';

test('a file is read, or the error names the reason', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-file-'));
  const path = (name: string) => join(directory, name);
  try {
    writeFileSync(path('good'), 'mode: é');
    writeFileSync(path('large'), 'x'.repeat(300_000));
    symlinkSync('loop', path('loop'));
    assert.equal(await readConfigFile(path('good')), 'mode: é');
    const reasons: [name: string, message: string][] = [
      ['missing', `open ${path('missing')}: no such file or directory`],
      ['good/below', `open ${path('good/below')}: not a directory`],
      ['', `read ${path('')}: is a directory`],
      ['large', `${path('large')} has 300000 bytes, at most 262144 are read`],
    ];
    for (const [name, message] of reasons) {
      const thrown = name === 'large' ? 'ConfigError' : 'FileError';
      await assert.rejects(readConfigFile(path(name)), { name: thrown, message });
    }
    await assert.rejects(readConfigFile(path('loop')), { name: 'FileError', message: /symbolic links/ });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('a file is overwritten, or the error names the reason', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-file-'));
  const path = (name: string) => join(directory, name);
  try {
    writeFileSync(path('old'), 'a longer text');
    await writeConfigFile(path('old'), 'mode: é');
    assert.equal(readFileSync(path('old'), 'utf8'), 'mode: é');
    const reasons: [name: string, message: string][] = [
      ['missing/file', `open ${path('missing/file')}: no such file or directory`],
      ['', `open ${path('')}: is a directory`],
    ];
    for (const [name, message] of reasons) {
      await assert.rejects(writeConfigFile(path(name), ''), { name: 'FileError', message });
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});
