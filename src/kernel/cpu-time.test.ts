import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { cpuMs } from './cpu-time.ts';
import { systemFiles } from './system-files.ts';

test('CPU time counts this process and programs that it ran', () => {
  const before = cpuMs(systemFiles);
  execFileSync(process.execPath, ['-e', 'const end = Date.now() + 200; while (Date.now() < end);']);
  const after = cpuMs(systemFiles);
  const { user, system } = process.cpuUsage();
  assert.ok(before !== undefined && after !== undefined);
  assert.ok(after > before);
  assert.ok(after > (user + system) / 1000, 'the program counts');
});

test('CPU time is unknown when /proc cannot be read, or holds something else', () => {
  assert.equal(cpuMs({ read: () => assert.fail('EMFILE: too many open files') }), undefined);
  assert.equal(cpuMs({ read: () => '' }), undefined);
});
