import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { applyOOMScoreAdj } from './oom-score.ts';

function failingFiles(errors: readonly (Error | undefined)[]) {
  const writes: string[] = [];
  return {
    writes,
    files: {
      read: () => '',
      write(path: string, text: string) {
        const error = errors[writes.length];
        writes.push(`${path}=${text}`);
        if (error) throw error;
      },
    },
  };
}

test('the OOM score adjustment is written', async () => {
  const { files, writes } = failingFiles([]);
  await applyOOMScoreAdj(-999, files, new FakeClock());
  assert.deepEqual(writes, ['/proc/self/oom_score_adj=-999']);
});

test('writing the OOM score is tried twice, 100 ms apart, then rejects', async () => {
  const denied = Object.assign(new Error('EACCES'), { code: 'EACCES' });
  const { files, writes } = failingFiles([denied, denied]);
  const clock = new FakeClock();
  const outcome = assert.rejects(applyOOMScoreAdj(-999, files, clock), /EACCES/);
  await clock.advance(99);
  assert.equal(writes.length, 1);
  await clock.advance(1);
  await outcome;
  assert.equal(writes.length, 2);
});

test('a missing OOM score file is not tried again', async () => {
  const { files, writes } = failingFiles([Object.assign(new Error('ENOENT'), { code: 'ENOENT' })]);
  await assert.rejects(applyOOMScoreAdj(-999, files, new FakeClock()), /ENOENT/);
  assert.equal(writes.length, 1);
});
