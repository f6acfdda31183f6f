import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { SavedTable } from '../kernel/iptables/saved-table.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import type { Difference } from './inspection.ts';
import { chainDifferences, missingJump, staleChain } from './rule-differences.ts';

const object = 'nat KUBE-A';
const mark = '-A KUBE-A -s 10.0.0.1 -j KUBE-MARK-MASQ';
const savedMark = '-A KUBE-A -s 10.0.0.1/32 -m comment --comment "x" -j KUBE-MARK-MASQ';
const drop = '-A KUBE-A -j DROP';

test('rules that do the same do not differ', async () => {
  assert.deepEqual(await differences([mark, drop], [savedMark, drop]), []);
});

test('a rule is missing as often as it is missing', async () => {
  assert.deepEqual(await differences([mark, drop, drop], [drop]), [
    { service: 'a/b/TCP', kind: 'rule', object, wanted: mark, found: undefined },
    { service: 'a/b/TCP', kind: 'rule', object, wanted: drop, found: undefined },
  ]);
});

test('a rule too many is shown as it is, with whose it was', async () => {
  assert.deepEqual(await differences([drop], [savedMark, drop]), [
    { service: `of ${savedMark}`, kind: 'rule', object, wanted: undefined, found: savedMark },
  ]);
});

test('of rules in another order the first is named', async () => {
  assert.deepEqual(await differences([mark, drop], [drop, savedMark]), [
    { service: 'a/b/TCP', kind: 'rule order', object, wanted: mark, found: drop },
  ]);
});

test('in a chain that others use, too, only what is missing counts', async () => {
  assert.deepEqual(await differences([mark], [drop, savedMark], true), []);
  assert.equal((await differences([mark], [drop], true)).length, 1);
});

test('a chain that is not there is named before its rules', async () => {
  const kinds = (await differences([mark], undefined)).map(({ kind, wanted }) => `${kind} ${wanted}`);
  assert.deepEqual(kinds, ['chain :KUBE-A', `rule ${mark}`]);
});

test('a jump may be anywhere in its chain', () => {
  const table = tableOf(['-A INPUT -j OTHER', '-A INPUT -m comment --comment "y" -j KUBE-A']);
  assert.deepEqual(missingJump(table, 'INPUT', '-A INPUT -j KUBE-A', 'IPv4'), []);
  assert.deepEqual(missingJump(table, 'INPUT', '-A INPUT -j KUBE-B', 'IPv4'), [
    { service: undefined, kind: 'jump', object: 'nat INPUT', wanted: '-A INPUT -j KUBE-B', found: undefined },
  ]);
});

test('a chain that should not be there is shown with its rules', () => {
  const found = `:KUBE-A\n${drop}`;
  assert.deepEqual(staleChain(tableOf([drop]), 'KUBE-A', undefined), {
    service: undefined,
    kind: 'chain',
    object,
    wanted: undefined,
    found,
  });
});

function differences(
  wanted: readonly string[],
  found: readonly string[] | undefined,
  isShared = false,
): Promise<Difference[]> {
  const chain = 'KUBE-A';
  const compared = {
    table: tableOf(found ?? []),
    chain,
    wanted: wanted.map((line) => ({ line, service: 'a/b/TCP' })),
    family: 'IPv4',
    isShared,
    serviceOf: (line: string) => `of ${line}`,
  } as const;
  return chainDifferences(compared, new TimeSlice(new FakeClock()));
}

function tableOf(lines: readonly string[]): SavedTable {
  const table = new SavedTable('nat');
  for (const line of lines) table.take(line);
  return table;
}
