import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { silentLogger } from '../../obs/log.ts';
import type { RunProgram } from '../program.ts';
import { Commands } from './commands.ts';
import { TableReader } from './table-reader.ts';

/** A reader, the names of legacy tables that are there, and every program that was run. */
async function readerOf(version: string, legacyNames: string | undefined) {
  const programs: string[] = [];
  const run: RunProgram = async (program, args, { onLine }) => {
    programs.push([program, ...args].join(' '));
    if (args.includes('--version')) return { status: 0, timedOut: false, output: version };
    for (const line of ['*nat', ':KUBE-A - [0:0]', '[3:180] -A KUBE-A -j RETURN', 'COMMIT']) onLine?.(line);
    return { status: 0, timedOut: false, output: '' };
  };
  const files = {
    read: (path: string) => {
      assert.equal(path, '/proc/net/ip_tables_names');
      if (legacyNames === undefined) throw new Error('no such file');
      return legacyNames;
    },
    write: () => assert.fail('something is written'),
  };
  const commands = new Commands({ family: 'IPv4', run, clock: new FakeClock(), logger: silentLogger });
  return { reader: await TableReader.open(commands, files), programs };
}

test('a table is read with the program of the family', async () => {
  const { reader, programs } = await readerOf('iptables v1.8.9 (nf_tables)', undefined);
  const table = await reader.read('nat');
  assert.equal(table.lines('KUBE-A').length, 1);
  await reader.read('filter');
  assert.deepEqual(programs, ['iptables --version', 'iptables-save -t nat', 'iptables-save -t filter']);
});

test('legacy programs are not asked for a missing table', async () => {
  for (const names of [undefined, '', 'filter\n']) {
    const { reader, programs } = await readerOf('iptables v1.8.9 (legacy)', names);
    assert.deepEqual([...(await reader.read('nat')).chains()], []);
    assert.deepEqual(programs, ['iptables --version']);
  }
  const { reader } = await readerOf('iptables v1.4.21', 'nat\nfilter\n');
  assert.deepEqual([...(await reader.read('nat')).chains()], ['KUBE-A']);
});
