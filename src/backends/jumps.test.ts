import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { Commands } from '../kernel/iptables/commands.ts';
import type { RunProgram } from '../kernel/program.ts';
import { silentLogger } from '../obs/log.ts';
import { comment, ensureJumps, type Jump } from './jumps.ts';

const jump: Jump = {
  table: 'nat',
  from: 'OUTPUT',
  to: 'KUBE-SERVICES',
  match: comment('kubernetes service portals'),
};
const structure = { chains: { nat: ['KUBE-SERVICES', 'KUBE-POSTROUTING'], filter: [] }, jumps: [jump] };
const rule = 'OUTPUT -t nat -m comment --comment kubernetes service portals -j KUBE-SERVICES';

const listing = '*nat\n:OUTPUT ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n-A OUTPUT -j OTHER\n';
const listed = '-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\n';
const otherWords = '-A OUTPUT --comment portals -j KUBE-SERVICES\n';

describe('chains and jumps that are missing', () => {
  test('missing chains and jumps are made in one restore, after one listing of all tables', async () => {
    const { programs, commands, inputs } = play({ 'iptables-save': listing });
    assert.deepEqual((await ensureJumps(programs, structure)).errors, []);
    assert.deepEqual(inputs, [`*nat\n:KUBE-POSTROUTING - [0:0]\n-I${listed.slice(2)}COMMIT\n`]);
    assert.deepEqual(commands, ['iptables-save', 'iptables-restore -w 5 --noflush --counters']);
  });

  test('nothing is made when all chains and jumps exist, even if a jump is listed in other words', async () => {
    const whole = `${listing}:KUBE-POSTROUTING - [0:0]\n`;
    const there = play({ 'iptables-save': whole + listed });
    await ensureJumps(there.programs, structure);
    assert.deepEqual(there.commands, ['iptables-save']);
    const known = play({ 'iptables-save': whole + otherWords, '-C': 0 });
    await ensureJumps(known.programs, structure);
    assert.deepEqual(known.commands.slice(1), [`iptables -w 5 -C ${rule}`]);
    const unknown = play({ 'iptables-save': whole + otherWords, '-C': 1 });
    await ensureJumps(unknown.programs, structure);
    assert.deepEqual(unknown.inputs, [`*nat\n-I${listed.slice(2)}COMMIT\n`]);
  });

  test('every call lists the tables again', async () => {
    const { programs, commands } = play({
      'iptables-save': `${listing}:KUBE-POSTROUTING - [0:0]\n${listed}`,
    });
    for (let round = 0; round < 2; round++) await ensureJumps(programs, structure);
    assert.deepEqual(commands, ['iptables-save', 'iptables-save']);
  });

  test('missing chains and jumps are made one by one when the restore is refused', async () => {
    const { programs, commands } = play({ 'iptables-save': listing, '--noflush': 2 });
    assert.deepEqual((await ensureJumps(programs, structure)).errors, []);
    assert.deepEqual(commands.slice(2), [
      'iptables -w 5 -N KUBE-POSTROUTING -t nat',
      `iptables -w 5 -I ${rule}`,
    ]);
  });

  test('a chain that cannot be made is an error; a jump that cannot be made is part of the result', async () => {
    const chain = play({ 'ip6tables-save': listing, '--noflush': 2, '-N': 2 }, 'IPv6');
    await assert.rejects(ensureJumps(chain.programs, structure), {
      message: 'ip6tables -w 5 -N KUBE-POSTROUTING -t nat: exit status 2: its words',
      status: 2,
    });
    const jumping = play({ 'iptables-save': listing, '--noflush': 2, '-I': 1 });
    const [error, ...others] = (await ensureJumps(jumping.programs, structure)).errors;
    assert.match(
      error?.message ?? '',
      /jump from OUTPUT to KUBE-SERVICES in table nat: .*-I .*exit status 1/,
    );
    assert.deepEqual(others, []);
  });

  test('nothing is tried one by one while another program holds the lock', async () => {
    const { programs, commands } = play({ 'iptables-save': listing, '--noflush': 4 });
    await assert.rejects(ensureJumps(programs, structure), /exit status 4/);
    assert.ok(!commands.some((command) => command.includes(' -N ')));
  });

  test('the result has all chains that the tables had before', async () => {
    const { programs } = play({ 'iptables-save': `${listing}COMMIT\n*raw\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n` });
    const { chains } = await ensureJumps(programs, structure);
    assert.deepEqual(
      [...chains],
      [
        ['nat', new Set(['OUTPUT', 'KUBE-SERVICES'])],
        ['raw', new Set(['OUTPUT'])],
      ],
    );
  });

  test('jumps of a table that iptables-save cannot print are looked for chain by chain', async () => {
    const incompatible = "# Table `nat' is incompatible, use 'nft' tool.\n";
    const { programs, commands, inputs } = play({ 'iptables-save': incompatible, '-S': listed });
    assert.deepEqual((await ensureJumps(programs, structure)).errors, []);
    assert.equal(commands[1], 'iptables -w 5 -S OUTPUT -t nat');
    assert.deepEqual(inputs, ['*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-POSTROUTING - [0:0]\nCOMMIT\n']);
  });

  test('a table that cannot be listed is an error', async () => {
    const { programs } = play({ 'iptables-save': 2 });
    await assert.rejects(ensureJumps(programs, structure), /iptables-save: exit status 2/);
  });

  test('a chain that another program makes meanwhile counts as made', async () => {
    const { programs } = play({ 'iptables-save': listing, '--noflush': 2, '-N': 1 });
    assert.deepEqual((await ensureJumps(programs, structure)).errors, []);
  });
});

/** Programs that answer a command, named by an option, with a status or an output; all else succeeds. */
function play(answers: Readonly<Record<string, number | string>>, family: 'IPv4' | 'IPv6' = 'IPv4') {
  const commands: string[] = [];
  const inputs: string[] = [];
  const run: RunProgram = async (program, args, { input, onLine }) => {
    commands.push([program, ...args].join(' '));
    if (input) inputs.push([...(input as Iterable<string>)].join(''));
    const answer = [program, ...args].map((word) => answers[word]).find((found) => found !== undefined) ?? 0;
    if (typeof answer === 'number') return { status: answer, timedOut: false, output: 'its words\n' };
    for (const line of answer.split('\n')) onLine?.(line);
    return { status: 0, timedOut: false, output: '' };
  };
  return { programs: over(run, family), commands, inputs };
}

function over(run: RunProgram, family: 'IPv4' | 'IPv6' = 'IPv4'): Commands {
  const clock = new FakeClock();
  // Nothing here is about how long a lock is waited for.
  clock.setTimeout = (callback) => {
    queueMicrotask(callback);
    return { cancel: () => {} };
  };
  return new Commands({ family, run, clock, logger: silentLogger });
}
