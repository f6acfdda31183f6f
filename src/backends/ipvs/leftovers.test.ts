import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IpvsOpeners } from '../../kernel/ipvs/openers.ts';
import { families } from '../../model/ip.ts';
import { silentLogger } from '../../obs/log.ts';
import { joined } from '../leftovers.ts';
import { deviceLeftovers, serverLeftovers, setLeftovers } from './leftovers.ts';
import { kernelName, setNames } from './sets.ts';

const context = { logger: silentLogger, scope: 'clean-up' } as const;
const allSets = families.flatMap((family) => setNames.map((set) => kernelName(set, family)));

test('servers, device and sets are listed and removed', async () => {
  const node = new Node();
  assert.deepEqual(await node.found(), [
    'IPVS virtual server 10.96.0.1:80/TCP',
    'IPVS virtual server firewall mark 7',
    'network device kube-ipvs0',
    'ipset KUBE-CLUSTER-IP',
  ]);
  assert.deepEqual(node.log, []);
  await node.leftovers.remove(context);
  assert.deepEqual(node.log, ['flush', 'remove kube-ipvs0', ...allSets.map((name) => `destroy ${name}`)]);
  assert.equal(node.open, 0);
});

test('a kernel that has not loaded IPVS is not made to, and one without sets has none', async () => {
  const node = new Node();
  node.isLoaded = false;
  node.hasSets = false;
  assert.deepEqual(await node.found(), ['network device kube-ipvs0']);
  await node.leftovers.remove(context);
  assert.deepEqual(node.log, ['remove kube-ipvs0']);
  assert.equal(node.open, 0);
});

test('a step that fails is thrown at the end, and stops no other', async () => {
  const node = new Node();
  node.refuse = /^(flush|remove kube-ipvs0|destroy KUBE-LOOP-BACK)$/;
  await assert.rejects(node.leftovers.remove(context), /flush refused/);
  assert.ok(node.log.includes('destroy KUBE-6-IPVS-IPS'));
  assert.equal(node.open, 0);
});

/** A node on which ipvs mode has run. */
class Node {
  readonly log: string[] = [];
  open = 0;
  isLoaded = true;
  hasSets = true;
  refuse: RegExp | undefined;

  get leftovers() {
    const read = (path: string) => {
      assert.equal(path, '/proc/net/ip_vs');
      return this.isLoaded ? '' : assert.fail('no such file');
    };
    const access = {
      files: { read, write: () => assert.fail('nothing is to be written') },
      open: async () => this.#openers,
    };
    return joined(serverLeftovers(access), deviceLeftovers(access), setLeftovers(access));
  }

  async found(): Promise<string[]> {
    return (await this.leftovers.find(context)).map(({ kind, name }) => `${kind} ${name}`);
  }

  readonly #openers: IpvsOpeners = {
    ipvs: async () =>
      this.#socket({
        listServers: async () => [
          { address: '10.96.0.1', port: 80, protocol: 'TCP' },
          { foreign: 'firewall mark 7', family: 'IPv4', scheduler: 'rr' },
        ],
        flush: async () => this.#do('flush'),
      }),
    sets: () =>
      this.#socket({
        protocol: async () => (this.hasSets ? 7 : assert.fail('no sets')),
        list: async (name: string) => (name === 'KUBE-CLUSTER-IP' ? { entries: [] } : undefined),
        destroy: async (name: string) => this.#do(`destroy ${name}`),
      }),
    devices: () =>
      this.#socket({
        find: async (name: string) => ({ name, index: 5 }),
        remove: async (name: string) => this.#do(`remove ${name}`),
      }),
    route: () => assert.fail('not needed'),
    addresses: () => assert.fail('not needed'),
  };

  /** What is opened must be closed. */
  #socket<T>(methods: object): T {
    this.open++;
    return { ...methods, close: () => void this.open-- } as T;
  }

  #do(what: string): boolean {
    this.log.push(what);
    if (this.refuse?.test(what)) throw new Error(`${what} refused`);
    return true;
  }
}
