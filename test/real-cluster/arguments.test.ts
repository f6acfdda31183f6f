import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readArguments } from './arguments.ts';
import { scenarioNames } from './scenarios/names.ts';

test('without arguments, the parallel batch would run in nftables mode with our proxy', () => {
  const { binaries, mode, proxy, batches, processes, keep, help } = readArguments([]);
  assert.deepEqual(
    { binaries, mode, proxy, batches, processes, keep, help },
    {
      binaries: undefined,
      mode: 'nftables',
      proxy: 'ours',
      batches: ['parallel'],
      processes: 4,
      keep: false,
      help: false,
    },
  );
});

test('batches and scenarios are given by commas or by repeating the flag, and run in that order', () => {
  const { batches } = readArguments(['--batch', 'serial,drain', '--batch=parallel']);
  assert.deepEqual(batches, ['serial', 'drain', 'parallel']);
  assert.deepEqual(readArguments(['--batch=scenarios']).batches, [...scenarioNames]);
  assert.deepEqual(readArguments(['--batch=memory,brief']).batches, ['memory', 'brief']);
});

test('relative folders begin where npm was called', (t) => {
  const before = process.env.INIT_CWD;
  process.env.INIT_CWD = '/somewhere';
  t.after(() => {
    if (before === undefined) delete process.env.INIT_CWD;
    else process.env.INIT_CWD = before;
  });
  const { binaries, work } = readArguments(['--binaries', 'bin', '--work=/elsewhere']);
  assert.deepEqual([binaries, work], ['/somewhere/bin', '/elsewhere']);
});

for (const [argv, message] of [
  [['--mode', 'ebpf'], /--mode: ebpf is none of nftables, iptables, userspace, ipvs; see .* --help/],
  [['--batch', 'parallel,nothing'], /--batch: nothing is none of parallel, serial/],
  [['--proxy', 'both'], /--proxy: both is none of ours, upstream/],
  [['--processes', '0'], /--processes: 0 is not a number from 1 to 99/],
  [['--binary', 'x'], /Unknown option '--binary'.*--help/s],
  [['--work', '/var/lib/kpt'], /--work: \/var\/lib\/kpt is not visible in the nodes/],
] as const) {
  test(`${argv.join(' ')} is refused with an error that names the flag and the value`, () => {
    assert.throws(() => readArguments(argv), message);
  });
}
