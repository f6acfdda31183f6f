import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import type { RunProgram } from '../../kernel/program.ts';
import { silentLogger } from '../../obs/log.ts';
import { IptablesPrograms, type Structure } from './iptables-programs.ts';
import type { Jump } from './kernel.ts';

const jump: Jump = {
  table: 'nat',
  from: 'OUTPUT',
  to: 'KUBE-SERVICES',
  comment: 'kubernetes service portals',
};
const rule = 'OUTPUT -t nat -m comment --comment kubernetes service portals -j KUBE-SERVICES';

const listing = ':OUTPUT ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n-A OUTPUT -j OTHER\n';
const listed = '-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\n';

suite('chains', () => {
  test('are made unless they are there', async () => {
    const { programs, commands } = play({ 'iptables-save': listing });
    await programs.ensureChain('nat', 'KUBE-SERVICES');
    await programs.ensureChain('nat', 'KUBE-POSTROUTING');
    assert.deepEqual(commands, ['iptables-save -t nat', 'iptables -w 5 -N KUBE-POSTROUTING -t nat']);
  });

  test('are looked for anew in every round', async () => {
    const { programs, commands } = play({ 'iptables-save': listing });
    for (let round = 0; round < 2; round++) {
      for (const chain of ['KUBE-SERVICES', 'OUTPUT']) await programs.ensureChain('nat', chain);
    }
    assert.deepEqual(commands, ['iptables-save -t nat', 'iptables-save -t nat']);
  });

  test('that somebody else makes meanwhile are as good as made', async () => {
    await play({ '-N': 1 }).programs.ensureChain('nat', 'KUBE-SERVICES');
  });

  test('that cannot be made are an error with the words of the program', async () => {
    const { programs } = play({ '-N': 2 }, 'IPv6');
    await assert.rejects(programs.ensureChain('filter', 'KUBE-FORWARD'), {
      message: 'ip6tables -w 5 -N KUBE-FORWARD -t filter: exit status 2: its words',
      status: 2,
    });
  });

  test('are removed with their jumps, those that are there', async () => {
    const { programs, commands, inputs } = play({ 'iptables-save': listing + listed });
    assert.deepEqual(await programs.removeChains('nat', ['KUBE-SERVICES', 'KUBE-POSTROUTING'], [jump]), []);
    assert.deepEqual(inputs, [
      `*nat\n:KUBE-SERVICES - [0:0]\n-D${listed.slice(2)}COMMIT\n`,
      '*nat\n-X KUBE-SERVICES\nCOMMIT\n',
    ]);
    assert.equal(commands.length, 3);
    assert.deepEqual(
      await play({ 'iptables-save': listing }).programs.removeChains('nat', ['KUBE-FORWARD'], []),
      [],
    );
  });

  test('that rules of others lead to are told from a lock that was not to be had', async () => {
    const ended = (status: number, output: string): RunProgram => {
      return async (_, args, { input, onLine }) => {
        onLine?.(':KUBE-MARK-MASQ - [0:0]');
        const isRemoval =
          args.includes('-X') || [...((input as Iterable<string>) ?? [])].join('').includes('-X');
        return { status: isRemoval ? status : 0, timedOut: false, output };
      };
    };
    const busy = 'iptables v1.8.9 (nf_tables):  CHAIN_DEL failed (Device or resource busy): chain X';
    for (const run of [ended(1, 'iptables: Too many links.'), ended(4, busy)]) {
      const programs = over(run);
      assert.deepEqual(await programs.removeChains('nat', ['KUBE-MARK-MASQ'], []), ['KUBE-MARK-MASQ']);
    }
    const locked = over(ended(4, 'Another app is currently holding the xtables lock'));
    await assert.rejects(locked.removeChains('nat', ['KUBE-MARK-MASQ'], []), /-X .*exit status 4/);
  });
});

suite('jumps', () => {
  test('are prepended unless they are there', async () => {
    const absent = play({ 'iptables-save': listing, '-C': 1 });
    await absent.programs.ensureJump(jump);
    assert.deepEqual(absent.commands.slice(1), [`iptables -w 5 -C ${rule}`, `iptables -w 5 -I ${rule}`]);
    const there = play({ 'iptables-save': listing + listed });
    await there.programs.ensureJump(jump);
    assert.deepEqual(there.commands, ['iptables-save -t nat']);
    const spelledOtherwise = play({ 'iptables-save': listing, '-C': 0 });
    await spelledOtherwise.programs.ensureJump(jump);
    assert.equal(spelledOtherwise.commands.length, 2);
  });

  test('that cannot be looked for or made are errors', async () => {
    await assert.rejects(play({ '-C': 2 }).programs.ensureJump(jump), /-C .*exit status 2/);
    await assert.rejects(play({ '-C': 1, '-I': 1 }).programs.ensureJump(jump), /-I .*exit status 1/);
  });
});

suite('what is missing', () => {
  const structure: Structure = {
    chains: { nat: ['KUBE-SERVICES', 'KUBE-POSTROUTING'], filter: [] },
    jumps: [jump],
  };
  const ensure = async (programs: IptablesPrograms) => {
    for (const chain of structure.chains.nat) await programs.ensureChain('nat', chain);
    await programs.ensureJump(jump);
  };

  test('is made in one go', async () => {
    const { programs, commands, inputs } = play({ 'iptables-save': listing }, 'IPv4', structure);
    await ensure(programs);
    assert.deepEqual(inputs, [`*nat\n:KUBE-POSTROUTING - [0:0]\n-I${listed.slice(2)}COMMIT\n`]);
    assert.equal(commands.length, 2);
    const whole = play(
      { 'iptables-save': `${listing}:KUBE-POSTROUTING - [0:0]\n${listed}` },
      'IPv4',
      structure,
    );
    await ensure(whole.programs);
    assert.equal(whole.commands.length, 1);
  });

  test('is made one by one when that fails', async () => {
    const { programs, commands } = play(
      { 'iptables-save': listing, '--noflush': 2, '-C': 1 },
      'IPv4',
      structure,
    );
    await ensure(programs);
    assert.deepEqual(
      commands.slice(2).map((command) => command.split(' ')[3]),
      ['-N', '-C', '-I'],
    );
  });
});

test('rules are restored from standard input', async () => {
  const { programs, commands, inputs } = play({}, 'IPv6');
  await programs.restore('*nat\nCOMMIT\n');
  assert.deepEqual(commands, ['ip6tables-restore -w 5 --noflush --counters']);
  assert.deepEqual(inputs, ['*nat\nCOMMIT\n']);
  await assert.rejects(
    play({ '--noflush': 2 }).programs.restore(''),
    /iptables-restore .*exit status 2: its words/,
  );
});

test('a family is usable when its nat table can be read', async () => {
  const { programs, commands } = play({});
  await programs.check();
  assert.deepEqual(commands, ['iptables -w 5 -S POSTROUTING -t nat']);
  await assert.rejects(play({ '-S': 3 }).programs.check(), /exit status 3/);
});

/** Programs that answer a command, named by an option, with a status or an output; all else succeeds. */
function play(
  answers: Readonly<Record<string, number | string>>,
  family: 'IPv4' | 'IPv6' = 'IPv4',
  structure?: Structure,
) {
  const commands: string[] = [];
  const inputs: string[] = [];
  const run: RunProgram = async (program, args, { input, onLine }) => {
    commands.push([program, ...args].join(' '));
    for await (const text of input ?? []) inputs.push(text);
    const answer = [program, ...args].map((word) => answers[word]).find((found) => found !== undefined) ?? 0;
    if (typeof answer === 'number') return { status: answer, timedOut: false, output: 'its words\n' };
    for (const line of answer.split('\n')) onLine?.(line);
    return { status: 0, timedOut: false, output: '' };
  };
  return { programs: over(run, family, structure), commands, inputs };
}

function over(run: RunProgram, family: 'IPv4' | 'IPv6' = 'IPv4', structure?: Structure): IptablesPrograms {
  const clock = new FakeClock();
  // Nothing here is about how long a lock is waited for.
  clock.setTimeout = (callback) => {
    callback();
    return { cancel: () => {} };
  };
  return new IptablesPrograms(new Commands({ family, run, clock, logger: silentLogger }), structure);
}
