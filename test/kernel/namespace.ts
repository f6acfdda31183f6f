import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { test } from 'node:test';
import { paced } from '../cluster/lab/pace.ts';

/**
 * Tests of the real kernel run in a network namespace of their own. A process cannot change over to one with all its
 * threads, so the test file starts itself again inside; the namespace goes when that process ends.
 */

const marker = 'KPT_IN_NAMESPACE';
const limitMs = paced(300_000);

/** Runs `tests` inside a fresh namespace when called as root; otherwise reports why they are skipped. */
export function inNetworkNamespace(file: string, tests: () => void): void {
  if (process.env[marker] === '1') {
    execFileSync('ip', ['link', 'set', 'lo', 'up']);
    tests();
    return;
  }
  const skip = process.getuid?.() === 0 ? false : 'network namespaces need root';
  test('in a network namespace of its own', { skip, timeout: limitMs }, async (context) => {
    const { output, status } = await runInside(file);
    for (const line of output.split('\n')) if (line.includes('measured:')) context.diagnostic(line.trim());
    assert.equal(status, 0, output);
    assert.match(output, /\bpass [1-9]/, output);
  });
}

/** Runs a command with the given input; its output. */
export function sh(command: string, input = ''): string {
  return execFileSync('sh', ['-c', command], { encoding: 'utf8', input, stdio: ['pipe', 'pipe', 'pipe'] });
}

function runInside(file: string): Promise<{ output: string; status: number | null }> {
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const child = spawn(
    'unshare',
    ['-n', process.execPath, '--max-old-space-size=1024', '--test-reporter=spec', file],
    {
      env: { ...environment, [marker]: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: limitMs,
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => resolve({ output, status }));
  });
}
