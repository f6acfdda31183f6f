import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { cpuMs } from './cpu-time.ts';
import { systemFiles } from './system-files.ts';

test('CPU time counts this process and programs that it ran', () => {
  const before = cpuMs(systemFiles);
  execFileSync(process.execPath, ['-e', 'const end = Date.now() + 200; while (Date.now() < end);']);
  const unreadable = { read: () => assert.fail('no /proc') };
  const own = process.cpuUsage();
  assert.ok(cpuMs(systemFiles) - before > 0);
  assert.ok(cpuMs(unreadable) >= (own.user + own.system) / 1000);
  assert.ok(cpuMs(systemFiles) > cpuMs(unreadable), 'the program counts');
});
