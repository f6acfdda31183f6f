import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../test/eventually.ts';
import { runProgram } from './program.ts';

const timeoutMs = 20_000;

test('a program returns its exit status and both outputs', async () => {
  const end = await runProgram('sh', ['-c', 'echo out; echo err >&2; exit 3'], { timeoutMs });
  assert.equal(end.status, 3);
  assert.equal(end.timedOut, false);
  assert.match(end.output, /out\n/);
  assert.match(end.output, /err\n/);
});

test('program arguments are not expanded by a shell', async () => {
  const end = await runProgram('printf', ['%s|', 'a b', '$(id)', '"'], { timeoutMs });
  assert.equal(end.output, 'a b|$(id)|"|');
});

test('program input is streamed, and output is delivered in whole lines', async () => {
  function* numbers() {
    for (let i = 0; i < 100_000; i++) yield `${i}\n`;
  }
  let lines = 0;
  let pid = 0;
  const onLine = (line: string) => assert.equal(line, String(lines++));
  const onStart = (id: number) => {
    pid = id;
  };
  const end = await runProgram('cat', [], { timeoutMs, input: numbers(), onLine, onStart });
  assert.deepEqual([end.status, end.output, lines], [0, '', 100_000]);
  assert.ok(pid > 0);
});

test('a last line of output without a newline is delivered', async () => {
  const lines: string[] = [];
  await runProgram('printf', ['a\\nb'], { timeoutMs, onLine: (line) => lines.push(line) });
  assert.deepEqual(lines, ['a', 'b']);
});

test('a program that does not read its input ends with its own status', async () => {
  function* endless() {
    for (let i = 0; i < 2_000_000; i++) yield 'more than anybody wants to read\n';
  }
  const end = await runProgram('sh', ['-c', 'exit 5'], { timeoutMs, input: endless() });
  assert.equal(end.status, 5);
});

test('an error of the input kills the program and is thrown', async () => {
  async function* broken() {
    yield 'a\n';
    throw new Error('no more rules');
  }
  await assert.rejects(runProgram('cat', [], { timeoutMs, input: broken() }), /no more rules/);
});

test('an error of onLine kills the program and is thrown', async () => {
  const onLine = () => assert.fail('not understood');
  await assert.rejects(runProgram('yes', [], { timeoutMs, onLine }), /not understood/);
});

test('a program that exceeds its time limit is killed', async () => {
  const end = await runProgram('sleep', ['60'], { timeoutMs: 50 });
  assert.deepEqual([end.status, end.timedOut], [undefined, true]);
});

test('a program that ends when its time limit comes can still be killed', async () => {
  await runProgram('true', [], { timeoutMs });
  for (let i = 0; i < 100; i++) {
    const end = await runProgram('sleep', ['0.02'], { timeoutMs: 15 + (i % 12) });
    assert.ok(end.status === 0 || end.timedOut);
  }
});

test('program output is cut off at a limit', async () => {
  const end = await runProgram('sh', ['-c', 'head -c 1000000 /dev/zero | tr "\\0" x'], { timeoutMs });
  assert.ok(end.output.length < 70_000);
  assert.match(end.output, /x… \(cut off\)$/);
});

test('an error of the input leaves no descriptor open', async () => {
  const open = () => readdirSync('/proc/self/fd').length;
  const broken = () => ({
    *[Symbol.iterator]() {
      yield 'a';
      throw new Error('no more rules');
    },
  });
  const run = () => assert.rejects(runProgram('cat', [], { timeoutMs, input: broken() }), /no more rules/);
  await run();
  const before = open();
  for (let i = 0; i < 5; i++) await run();
  await eventually('all descriptors are closed', () => open() <= before);
});

test('a program that writes to a closed pipe ends by SIGPIPE, which Node itself ignores', async () => {
  const end = await runProgram('bash', ['-c', 'yes | head -1 >/dev/null; echo $PIPESTATUS'], {
    timeoutMs,
  });
  assert.equal(end.output, '141\n');
});

test('the signal that ended a program is told', async () => {
  const end = await runProgram('sh', ['-c', 'kill -TERM $$'], { timeoutMs });
  assert.deepEqual([end.status, end.signal, end.timedOut], [undefined, 'SIGTERM', false]);
});

test('an exit status is told also where SIGCHLD was ignored', () => {
  const code = `import { runProgram } from ${JSON.stringify(join(import.meta.dirname, 'program.ts'))};
    console.log((await runProgram('sh', ['-c', 'exit 4'], { timeoutMs: 20000 })).status);`;
  const args = ['-c', 'trap "" CHLD; exec "$0" "$@"', process.execPath, '--input-type=module', '-e', code];
  const { stdout, stderr } = spawnSync('bash', args, { encoding: 'utf8' });
  assert.equal(stdout, '4\n', stderr);
});

test('starting a missing program rejects', async () => {
  await assert.rejects(runProgram('kpt-no-such-program', [], { timeoutMs }), { code: 'ENOENT' });
  await assert.rejects(runProgram('kpt-no-such-program', [], { timeoutMs, input: ['x'] }), {
    code: 'ENOENT',
  });
});
