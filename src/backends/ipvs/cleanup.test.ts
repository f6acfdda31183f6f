import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import type { IpvsOpeners } from '../../kernel/ipvs/openers.ts';
import type { RunProgram } from '../../kernel/program.ts';
import { families } from '../../model/ip.ts';
import { silentLogger } from '../../obs/log.ts';
import { removeAll } from './cleanup.ts';
import { kernelName, setNames } from './sets.ts';

const jump = '-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES';

test('everything of both families goes, rules before the sets that they look up', async () => {
  const node = new Leftovers();
  await node.removeAll();
  assert.deepEqual(node.log.slice(0, 6), [
    'flush',
    'remove kube-ipvs0',
    `iptables-restore *nat :KUBE-SERVICES - [0:0] :KUBE-MARK-MASQ - [0:0] ${jump.replace('-A', '-D')} COMMIT`,
    'iptables-restore *nat -X KUBE-SERVICES -X KUBE-MARK-MASQ COMMIT',
    `ip6tables-restore *nat :KUBE-SERVICES - [0:0] :KUBE-MARK-MASQ - [0:0] ${jump.replace('-A', '-D')} COMMIT`,
    'ip6tables-restore *nat -X KUBE-SERVICES -X KUBE-MARK-MASQ COMMIT',
  ]);
  const destroyed = node.log.filter((line) => line.startsWith('destroy '));
  assert.deepEqual(node.log.slice(-destroyed.length), destroyed);
  const names = families.flatMap((family) => setNames.map((set) => kernelName(set, family)));
  assert.deepEqual(
    destroyed,
    names.map((name) => `destroy ${name}`),
  );
  assert.equal(node.open, 0);
});

test('a kernel that has not loaded IPVS is not made to', async () => {
  const node = new Leftovers();
  node.isLoaded = false;
  await node.removeAll();
  assert.equal(node.log[0], 'remove kube-ipvs0');
});

test('a family without iptables, and a kernel without sets, have nothing to remove', async () => {
  const node = new Leftovers();
  node.iptablesStatus = 3;
  node.hasSets = false;
  await node.removeAll();
  assert.deepEqual(node.log, ['flush', 'remove kube-ipvs0']);
});

test('chains that rules of iptables mode lead to stay', async () => {
  for (const status of [0, 1]) {
    const node = new Leftovers();
    node.isInUse = true;
    node.removeStatus = status;
    await node.removeAll();
    assert.deepEqual(
      node.log.filter((line) => line.startsWith('iptables -X')),
      ['iptables -X KUBE-SERVICES', 'iptables -X KUBE-MARK-MASQ'],
    );
  }
});

test('a step that fails is reported in the end, and stops no other', async () => {
  const node = new Leftovers();
  node.refuse = /^(flush|remove kube-ipvs0|destroy KUBE-LOOP-BACK)$/;
  await assert.rejects(node.removeAll(), /flush refused/);
  assert.ok(node.log.includes('ip6tables-restore *nat -X KUBE-SERVICES -X KUBE-MARK-MASQ COMMIT'));
  assert.ok(node.log.includes('destroy KUBE-6-IPVS-IPS'));
  assert.equal(node.open, 0);
});

/** A node on which ipvs mode has run. */
class Leftovers {
  readonly log: string[] = [];
  open = 0;
  isLoaded = true;
  hasSets = true;
  iptablesStatus = 0;
  /** Rules of others lead to some of the chains. */
  isInUse = false;
  removeStatus = 0;
  refuse: RegExp | undefined;

  removeAll(): Promise<void> {
    const read = (path: string) => {
      assert.equal(path, '/proc/net/ip_vs');
      return this.isLoaded ? '' : assert.fail('no such file');
    };
    const files = { read, write: () => assert.fail('nothing is to be written') };
    return removeAll({
      open: this.#openers,
      files,
      run: this.#run,
      clock: new FakeClock(),
      logger: silentLogger,
    });
  }

  readonly #run: RunProgram = async (program, args, { input, onLine }) => {
    const [, , verb = '', chain = ''] = args;
    let status = this.iptablesStatus;
    if (program.endsWith('-restore')) {
      const text = [...((input as Iterable<string>) ?? [])].join('');
      this.#say(`${program} ${text.trim().replaceAll('\n', ' ')}`);
      if (this.isInUse && text.includes('-X')) status = 4;
    } else if (verb === '-X') {
      this.#say(`${program} -X ${chain}`);
      status = this.removeStatus;
    } else if (program.endsWith('-save') && (args.length === 0 || args.includes('nat'))) {
      const others = ['-A OUTPUT -j OTHER', '-A OUTPUT -j KUBE-SERVICES'];
      const made = ['OUTPUT ACCEPT', 'KUBE-SERVICES -', 'KUBE-MARK-MASQ -', 'OTHER -'].map(
        (it) => `:${it} [0:0]`,
      );
      for (const line of [...made, ...others, jump]) onLine?.(line);
    }
    return { status, timedOut: false, output: status === 0 ? '' : 'Too many links' };
  };

  readonly #openers: IpvsOpeners = {
    ipvs: async () => this.#socket({ flush: async () => this.#do('flush') }),
    sets: () =>
      this.#socket({
        protocol: async () => (this.hasSets ? 7 : assert.fail('no sets')),
        destroy: async (name: string) => this.#do(`destroy ${name}`),
      }),
    devices: () => this.#socket({ remove: async (name: string) => this.#do(`remove ${name}`) }),
    route: () => assert.fail('not needed'),
    addresses: () => assert.fail('not needed'),
  };

  /** What is opened must be closed. */
  #socket<T>(methods: object): T {
    this.open++;
    return { ...methods, close: () => void this.open-- } as T;
  }

  #do(what: string): boolean {
    this.#say(what);
    if (this.refuse?.test(what)) throw new Error(`${what} refused`);
    return true;
  }

  #say(what: string): void {
    this.log.push(what);
  }
}
