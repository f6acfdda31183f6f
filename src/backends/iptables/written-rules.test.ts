import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakePrograms } from '../../../test/iptables/fake-programs.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { silentLogger } from '../../obs/log.ts';
import { savedRule } from '../jumps.ts';
import { jumps } from './jumps.ts';
import { WrittenRules } from './written-rules.ts';

const input = [
  '*filter\n:KUBE-SERVICES - [0:0]\n:KUBE-FIREWALL - [0:0]\n-A KUBE-FIREWALL -j DROP\nCOMMIT\n*na',
  't\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC-A - [0:0]\n:KUBE-SVC-OLD - [0:0]\n',
  '-A KUBE-SERVICES -j KUBE-SVC-A\n-A KUBE-SVC-A -j X\n-A KUBE-SV',
  'C-A -j Y\n-X KUBE-SVC-OLD\nCOMMIT\n',
];
const whole: Record<string, string[]> = {
  filter: [
    ':INPUT ACCEPT [5:300]',
    ':KUBE-SERVICES - [0:0]',
    ':KUBE-FIREWALL - [0:0]',
    '-A KUBE-FIREWALL -j DROP',
    ...jumps.filter(({ table }) => table === 'filter').map(savedRule),
  ],
  nat: [
    ':KUBE-SERVICES - [0:0]',
    ':KUBE-SVC-A - [0:0]',
    ':KUBE-FOREIGN - [0:0]',
    '-A KUBE-SERVICES -m comment --comment "something else" -j KUBE-SVC-A',
    '-A KUBE-SVC-A -j X',
    '-A KUBE-SVC-A -j Y',
    ...jumps.filter(({ table }) => table === 'nat').map(savedRule),
  ],
  mangle: [':KUBE-PROXY-CANARY - [0:0]'],
};

async function writtenOnce(): Promise<WrittenRules> {
  const written = new WrittenRules();
  written.expectEmpty('mangle', 'KUBE-PROXY-CANARY');
  written.expectJumps();
  let seen = '';
  await written.during(input, async (counted) => {
    assert.ok(written.isWriting);
    for (const piece of counted) seen += piece;
  });
  assert.equal(seen, input.join(''));
  assert.ok(!written.isWriting);
  return written;
}

function differences(written: WrittenRules, change: Record<string, (lines: string[]) => string[]> = {}) {
  const { run } = new FakePrograms((command) => {
    const table = command.split(' ').at(-1) ?? '';
    return { lines: (change[table] ?? ((lines) => lines))(whole[table] ?? []) };
  });
  const commands = new Commands({ family: 'IPv4', run, clock: new FakeClock(), logger: silentLogger });
  return written.differences(commands).then((found) => Object.fromEntries(found));
}

const without = (text: string) => (lines: string[]) => lines.filter((line) => !line.includes(text));

test('what is as it was written has no differences, whatever else there is', async () => {
  assert.deepEqual(await differences(await writtenOnce()), {});
});

test('rules added or deleted, chains deleted and jumps deleted are differences', async () => {
  const written = await writtenOnce();
  assert.deepEqual(await differences(written, { nat: without('-j Y') }), { 'rules changed': 1 });
  assert.deepEqual(await differences(written, { nat: (lines) => [...lines, '-A KUBE-SERVICES -j ACCEPT'] }), {
    'rules changed': 1,
  });
  assert.deepEqual(await differences(written, { nat: without('KUBE-SVC-A') }), {
    'chain deleted': 1,
    'rules changed': 1,
  });
  assert.deepEqual(await differences(written, { nat: without('-A PREROUTING') }), {
    'jump to KUBE-SERVICES deleted': 1,
  });
  assert.deepEqual(await differences(written, { mangle: () => [] }), { 'chain deleted': 1 });
});

test('rules of the chain that is shared with the kubelet do not count, the chain does', async () => {
  const written = await writtenOnce();
  const more = (lines: string[]) => [...lines, '-A KUBE-FIREWALL -j DROP', '-A KUBE-FIREWALL -j DROP'];
  assert.deepEqual(await differences(written, { filter: more }), {});
  assert.deepEqual(await differences(written, { filter: without('KUBE-FIREWALL') }), {
    'chain deleted': 1,
    'jump to KUBE-FIREWALL deleted': 2,
  });
  assert.ok(!written.owns('filter', 'KUBE-FIREWALL'));
});

test('it knows which chains are ours', async () => {
  const written = await writtenOnce();
  assert.ok(written.owns('nat', 'KUBE-SVC-A'));
  assert.ok(!written.owns('nat', 'KUBE-SVC-OLD'));
  assert.ok(!written.owns('filter', 'KUBE-SVC-A'));
  assert.ok(!written.owns('nat', 'KUBE-FOREIGN'));
});

test('after a write that failed nothing is known, until the next that succeeds', async () => {
  const written = await writtenOnce();
  const { epoch } = written;
  const failing = written.during(input, () => Promise.reject(new Error('no')));
  await assert.rejects(failing, /no/);
  assert.notEqual(written.epoch, epoch);
  const flushed = { nat: () => [] };
  assert.deepEqual(await differences(written, flushed), {});
  await written.during(input, async (counted) => void [...counted]);
  assert.notDeepEqual(await differences(written, flushed), {});
});

test('before anything was written nothing is missed', async () => {
  assert.deepEqual(await differences(new WrittenRules(), { nat: () => [] }), {});
});

test('it tells by how many entries tables grow: chains have two besides their rules', async () => {
  const growths: (Record<string, number> | 'unknown')[] = [];
  const written = new WrittenRules((growth) =>
    growths.push(growth === 'unknown' ? growth : Object.fromEntries(growth)),
  );
  const write = (text: string) =>
    written.during([text], async (counted) => {
      for (const _ of counted);
    });
  written.expectEmpty('mangle', 'KUBE-PROXY-CANARY');
  written.expectEmpty('mangle', 'KUBE-PROXY-CANARY');
  await write('*nat\n:KUBE-SVC-A - [0:0]\n-A KUBE-SVC-A -j X\nCOMMIT\n');
  await write(
    '*nat\n:KUBE-SVC-A - [0:0]\n:KUBE-SVC-B - [0:0]\n-A KUBE-SVC-B -j X\n-A KUBE-SVC-B -j Y\nCOMMIT\n',
  );
  await write('*nat\n:KUBE-SVC-B - [0:0]\n-X KUBE-SVC-B\nCOMMIT\n*filter\nCOMMIT\n');
  assert.deepEqual(growths, [{ mangle: 2 }, { mangle: 0 }, 'unknown', { nat: 3 }, { nat: -4, filter: 0 }]);
});
