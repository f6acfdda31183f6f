import assert from 'node:assert/strict';
import { test } from 'node:test';
import { main, type Terminal } from './main.ts';

async function run(...args: string[]): Promise<{ stdout: string; stderr: string; exitCode: unknown }> {
  const written = { stdout: '', stderr: '' };
  const stream = (name: 'stdout' | 'stderr') => ({
    write(text: string) {
      written[name] += text;
    },
  });
  const terminal: Terminal = { stdout: stream('stdout'), stderr: stream('stderr') };
  await main(args, terminal);
  return { ...written, exitCode: terminal.exitCode };
}

test('--help and -h say what there is', async () => {
  for (const flag of ['--help', '-h']) {
    const { stdout, stderr, exitCode } = await run(flag);
    assert.match(stdout, /Usage:\n {2}kube-proxyctl \[flags\]/);
    assert.equal(stderr, '');
    assert.equal(exitCode, undefined);
  }
});

test('--version names the release', async () => {
  const { stdout, exitCode } = await run('--version');
  assert.equal(stdout, 'kube-proxyctl for Kubernetes v1.37.0\n');
  assert.equal(exitCode, undefined);
});

const faults: [args: string[], stderr: string][] = [
  [[], 'Error: a flag is needed, as there are no commands yet; see kube-proxyctl --help\n'],
  [['explain'], 'Error: unknown command "explain"; see kube-proxyctl --help\n'],
  [['--nope'], 'Error: unknown flag: --nope; see kube-proxyctl --help\n'],
  [['--version', 'x'], 'Error: --version stands alone, got "x" too; see kube-proxyctl --help\n'],
];

for (const [args, message] of faults) {
  test(`refuses ${JSON.stringify(args)}`, async () => {
    assert.deepEqual(await run(...args), { stdout: '', stderr: message, exitCode: 1 });
  });
}
