import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { guestScript, reportPath } from './guest-script.ts';

const directory = mkdtempSync(join(tmpdir(), "kpt-guest's "));
const lane = ['test/a.test.ts', 'test/b.test.ts'];

/** Runs the script without namespaces and with a fake Node that records its arguments and fails for one file. */
function runScript(failing: string): { status: number | null; calls: string[][]; output: string } {
  const node = join(directory, 'node_modules/.bin/node');
  mkdirSync(join(directory, 'node_modules/.bin'), { recursive: true });
  const record = `printf '%s\\n' "$KPT_PACE $KPT_CONTRACT $KPT_SEED $KPT_LAB_NAMESPACE" "$NODE_OPTIONS" "$@" "" >> calls`;
  writeFileSync(node, `#!/bin/sh\n${record}\ncase "$*" in *${failing}) exit 1;; esac\n`);
  chmodSync(node, 0o755);
  const ip = join(directory, 'ip');
  writeFileSync(ip, '#!/bin/sh\n[ "$2" != exec ] || { shift 3 && exec "$@"; }\n');
  chmodSync(ip, 0o755);
  writeFileSync(join(directory, 'calls'), '');
  const script = guestScript({ root: directory, lane, pace: 3, contract: 'brief', seed: '7' });
  const { status, stdout } = spawnSync('bash', ['-c', script], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${directory}:${process.env.PATH}` },
  });
  const calls = readFileSync(join(directory, 'calls'), 'utf8').split('\n\n').filter(Boolean);
  return { status, calls: calls.map((call) => call.split('\n')), output: stdout };
}

describe('the script of the emulated machine', () => {
  after(() => rmSync(directory, { recursive: true }));

  test('runs every file, each with a separate report', () => {
    const { status, calls, output } = runScript('nothing');
    assert.equal(status, 0);
    assert.deepEqual(
      calls.map((call) => [call.at(-1), call.at(-2)]),
      lane.map((file) => [file, `--test-reporter-destination=/vm-out/${reportPath(file)}`]),
    );
    assert.match(output, /^test\/b\.test\.ts: passed after \d+ s$/m);
    assert.notEqual(reportPath('test/a.test.ts'), reportPath('test/b.test.ts'));
    assert.deepEqual(
      calls.map(([settings]) => settings),
      ['3 brief 7 kpt-1', '3 brief 7 kpt-2'],
    );
    for (const [, options] of calls) {
      assert.match(options ?? '', /^--import file:\/\/\S+s%20\S+\/test\/vm\/stripped-sources\.js$/);
    }
  });

  test('goes on after a file that failed, and fails in the end', () => {
    const { status, calls, output } = runScript('a.test.ts');
    assert.equal(status, 1);
    assert.equal(calls.length, 2);
    assert.match(output, /^test\/a\.test\.ts: failed after/m);
  });
});
