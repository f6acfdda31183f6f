/** Which programs count as ours, on the kernel: process ids are numbers of a pid namespace. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { RuleWatch } from '../../src/backends/iptables/rule-watch.ts';
import { openRuleEvents } from '../../src/kernel/nft/rule-events.ts';
import { runProgram } from '../../src/kernel/program.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { hasProgram, inNamespace, run } from '../cluster/lab/namespace.ts';
import { eventually } from '../eventually.ts';

const iptables = 'iptables-nft';
const chain = 'KUBE-SVC-A';
const skip = hasProgram(iptables, '-V') ? false : `needs ${iptables}`;

inNamespace(import.meta.url, () => {
  const changes: string[] = [];
  let watch: RuleWatch;

  before(async () => {
    const subscribe = openRuleEvents(await loadLibc());
    watch = new RuleWatch({ subscribe, clock: systemClock, logger: silentLogger });
    watch.watch('IPv4', {
      owns: (table, name) => table === 'nat' && name === chain,
      onDamage: ({ objects }) => void changes.push(...objects.keys()),
      onSuspicion: () => {},
    });
  });
  after(() => watch?.close());

  /** Runs iptables as a program of ours; returns its process id. */
  async function write(...args: readonly string[]): Promise<number> {
    let writer = 0;
    const onStart = (pid: number) => {
      writer = pid;
      watch.writerStarted(pid);
    };
    const end = await runProgram(iptables, args, { timeoutMs: 60_000, onStart });
    assert.equal(end.status, 0, end.output);
    watch.writerEnded(writer);
    return writer;
  }

  /** Adds a rule in a new pid namespace, if possible with this process id; returns the one it had. */
  function addElsewhere(pid: number): number {
    const add = `${iptables} -t nat -A ${chain} -j RETURN & echo $!; wait $!`;
    const choose = `echo ${pid - 1} 2>/dev/null >/proc/sys/kernel/ns_last_pid`;
    return Number(run('unshare', '--pid', '--fork', 'sh', '-c', `${choose}; ${add}`));
  }

  test('a program with the number of one of ours, in another pid namespace, is noticed', {
    skip,
  }, async (t) => {
    await write('-t', 'nat', '-N', chain);
    const pid = await write('-t', 'nat', '-A', chain, '-j', 'ACCEPT');
    if (addElsewhere(pid) !== pid) return t.skip('process ids cannot be chosen here');
    await eventually('the notice of the other program', () => changes.length > 0);
    assert.deepEqual(new Set(changes), new Set(['rule added']));
  });
});
