/** nftables mode with --nftables-fast-path: open connections skip the rules, and still follow every change. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterEach, describe, test } from 'node:test';
import type { DiffReport, StatusReport } from '../../src/inspect/api.ts';
import type { FlowList } from '../../src/inspect/traffic-api.ts';
import type { OpenConversation } from '../cluster/lab/host.ts';
import { enterNamespace, hasProgram, labUnavailable } from '../cluster/lab/namespace.ts';
import type { DatagramOptions, Outcome } from '../cluster/lab/traffic.ts';
import { predict } from '../explain/prediction.ts';
import { flowtablesUnavailable } from '../kernel/flowtables.ts';
import { kubeProxy, run } from '../program/run.ts';
import { inspect } from '../program/served-pages.ts';
import type { AddressBook } from './address-book.ts';
import { runInNode } from './node-commands.ts';
import { podPort } from './objects.ts';
import { dualStackStage } from './stage.ts';
import type { Packet, ServiceSpec } from './story.ts';
import { upstreamStart } from './upstream-table.ts';
import { everyWayIn } from './web-service.ts';

const missingProgram = ['nft', 'conntrack'].find((name) => !hasProgram(name, '--version'));
const skip = labUnavailable() ?? (missingProgram ? `needs the program ${missingProgram}` : false);
const namespace = skip ? '' : enterNamespace(import.meta.url);

const flags = ['--nftables-fast-path=services', '--nftables-fast-path-after=6'];
/** Through the node; the last ones are masqueraded. */
const waysIn: readonly Packet[] = everyWayIn.filter(({ from }) => from !== 'node');
const servedBy = (...endpoints: ServiceSpec['endpoints']): ServiceSpec => ({
  nodePort: true,
  loadBalancer: true,
  endpoints,
});
const served = (...endpoints: ServiceSpec['endpoints']): ServiceSpec => ({
  protocols: ['UDP'],
  nodePort: true,
  endpoints,
});

const answererOrKind = (outcome: Outcome): string =>
  outcome.kind === 'answered' ? outcome.by : outcome.kind;

/** Counts what arrives at the rules: fragments, packets with options, packets that expire, and all other datagrams. */
const usualWayCounters = `
  table inet usual-way {
    chain arrived {
      type filter hook prerouting priority -500;
      ip frag-off & 0x3fff != 0 counter accept
      exthdr frag exists counter accept
      ip hdrlength > 5 counter accept
      ip protocol udp ip ttl 1 counter accept
      ip6 nexthdr udp ip6 hoplimit 1 counter accept
      meta l4proto udp counter
    }
  }`;

/** A line of the list of connections. */
interface Tracked {
  readonly isOffloaded: boolean;
  readonly packets: number;
}

describe('the fast path', { skip }, () => {
  const stage = dualStackStage('nftables', namespace);
  const needsFlowtables = (!skip && flowtablesUnavailable()) || false;

  afterEach(() => runInNode('nft', 'flush', 'ruleset'));

  /** The lines of both tables, sorted: a chain that is made again comes last. */
  const tables = async (): Promise<string> => {
    const list = (family: string) => runInNode('nft', '-t', 'list', 'table', family, 'kube-proxy');
    return `${await list('ip')}${await list('ip6')}`.split('\n').sort().join('\n');
  };
  const traces = async (): Promise<string[]> => (await tables()).match(/.*(fast-path|flow add).*/g) ?? [];

  /** Connections to an endpoint in both families. */
  async function tracked(protocol: 'tcp' | 'udp', endpoint: 'A' | 'B' | 'C'): Promise<Tracked[]> {
    const lists = await Promise.all(
      stage.views.map(async ({ book }) => {
        const family = book.family.toLowerCase();
        const text = await runInNode(
          'conntrack',
          '-L',
          '-f',
          family,
          '-p',
          protocol,
          '-r',
          book.hosts[endpoint],
        );
        return text.split('\n').filter((line) => line.includes(`sport=${podPort}`));
      }),
    );
    return lists.flat().map((line) => ({
      isOffloaded: line.includes('[OFFLOAD]'),
      packets: [...line.matchAll(/packets=(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0),
    }));
  }

  const openAll = (packets: readonly Packet[], name = 'web'): Promise<OpenConversation[]> =>
    Promise.all(stage.views.flatMap((view) => packets.map((packet) => view.open({ ...packet, of: name }))));

  /** Asks once on every connection; returns the different outcomes. */
  const kindsOf = async (open: readonly OpenConversation[]): Promise<string[]> => {
    const outcomes = await Promise.all(open.map((conversation) => conversation.outcome()));
    return [...new Set(outcomes.map(answererOrKind))];
  };

  /** Asks until all connections to an endpoint are on the fast path. */
  async function accelerated(open: readonly OpenConversation[], by: 'A' | 'B' | 'C'): Promise<Tracked[]> {
    let list: Tracked[] = [];
    await stage.cluster.eventually(`connections to ${by} on the fast path`, async () => {
      assert.deepEqual(await kindsOf(open), [by]);
      list = (await tracked('tcp', by)).filter(({ isOffloaded }) => isOffloaded);
      return list.length >= open.length;
    });
    return list;
  }

  const packetsOf = (list: readonly Tracked[]): number => list.reduce((sum, { packets }) => sum + packets, 0);
  const closeAll = async (open: readonly OpenConversation[]): Promise<void> => {
    for (const conversation of open) await conversation.close();
  };

  /** After how many packets the connection of a pod takes the fast path, as `explain` says. */
  async function explained({ family, hosts, service }: AddressBook): Promise<number | undefined> {
    const { clusterIP: destination } = service(stage.scene.service().n);
    const packet = {
      family,
      host: 'pod',
      source: hosts.pod,
      destination,
      port: 80,
      transport: 'tcp',
    } as const;
    const { kernelUnknown, kernel, differences } = await predict(packet);
    assert.deepEqual([kernelUnknown, ...differences], [null]);
    return kernel?.fastPathAfter;
  }

  const families = async (): Promise<StatusReport['families']> =>
    (await inspect<StatusReport>('status')).families;
  const differences = async (): Promise<DiffReport['items']> => (await inspect<DiffReport>('diff')).items;

  test('takes connections of Services from everywhere after some packets, and their packets count', {
    skip: needsFlowtables,
  }, async () => {
    await stage.cluster.start({ flags });
    await stage.scene.apply(servedBy('A'));
    const open = await openAll(waysIn);
    const before = packetsOf(await accelerated(open, 'A'));
    for (let i = 0; i < 5; i++) assert.deepEqual(await kindsOf(open), ['A']);
    // A question and its answer are two packets at least.
    const counted = packetsOf(await tracked('tcp', 'A')) - before;
    assert.ok(counted >= open.length * 10, `${counted} packets`);
    const { items } = await inspect<FlowList>('flows');
    const fast = items.filter(({ onFastPath, state }) => onFastPath && state === 'ESTABLISHED');
    assert.equal(fast.length, open.length, JSON.stringify(items));
    assert.deepEqual(await differences(), []);
    for (const { book } of stage.views) assert.equal(await explained(book), 6);
    for (const { fastPath } of await families()) {
      assert.ok(fastPath?.inUse && fastPath.counting, JSON.stringify(fastPath));
      assert.deepEqual([fastPath.scope, fastPath.after], ['services', 6]);
      assert.ok(fastPath.devices.includes('podveth1'));
      assert.ok(fastPath.leftOut.some(({ device, reason }) => device === 'lo' && reason === 'loopback'));
    }
    await closeAll(open);
  });

  test('leaves other connections alone, or takes them when it is for all', {
    skip: needsFlowtables,
  }, async () => {
    const direct = () =>
      Promise.all(
        stage.views.map(({ book }) =>
          stage.landscape.host('pod').open({ address: book.hosts.C, port: podPort }),
        ),
      );
    await stage.cluster.start({ flags });
    const usual = await direct();
    for (let i = 0; i < 10; i++) assert.deepEqual(await kindsOf(usual), ['C']);
    assert.deepEqual(
      (await tracked('tcp', 'C')).filter(({ isOffloaded }) => isOffloaded),
      [],
    );
    await stage.cluster.stop();
    await stage.cluster.start({ flags: ['--nftables-fast-path=all', '--nftables-fast-path-after=6'] });
    const fast = await direct();
    await accelerated([...fast], 'C');
    await closeAll([...usual, ...fast]);
  });

  test('takes in the device of a new pod, and a device that comes again under its name', {
    skip: needsFlowtables,
  }, async () => {
    await stage.cluster.start({ flags });
    const has = (device: string, count: number) =>
      stage.cluster.eventually(`${device} in ${count} flowtables`, async () => {
        const lists = (await runInNode('nft', 'list', 'flowtables')).match(/devices = \{[^}]*\}/g) ?? [];
        const listing = await families();
        const reported = listing.filter(({ fastPath }) => fastPath?.devices.includes(device)).length;
        return lists.filter((list) => list.includes(device)).length === count && reported === count;
      });
    for (let i = 0; i < 2; i++) {
      await runInNode('ip', 'link', 'add', 'newpod0', 'type', 'veth', 'peer', 'name', 'newpod1');
      await has('newpod0', 0);
      await runInNode('ip', 'link', 'set', 'newpod0', 'up');
      await has('newpod0', 2);
      await runInNode('ip', 'link', 'del', 'newpod0');
      await has('newpod0', 0);
    }
    assert.deepEqual(await differences(), []);
  });

  test('keeps flows of datagrams on it, also with fragments, IP options or packets that expire, until their endpoint is gone', {
    skip: needsFlowtables,
  }, async () => {
    await stage.cluster.start({ flags });
    await stage.scene.apply(served('A', 'C'));
    const packets: readonly Packet[] = [
      { from: 'pod', to: 'clusterIP', sourcePort: 30_123 },
      { from: 'client', to: 'nodePort', sourcePort: 30_123 },
    ];
    /** Asks on every flow; returns the answering endpoints, or what else became of the question. */
    const ask = async (datagram: DatagramOptions = {}, views = stage.views): Promise<string[]> => {
      const asking = views.flatMap((view) => packets.map((packet) => view.outcome({ ...packet, datagram })));
      return (await Promise.all(asking)).map(answererOrKind);
    };
    const areOnFastPath = async (answerers: readonly string[]): Promise<boolean> => {
      const lists = await Promise.all((['A', 'B', 'C'] as const).map((name) => tracked('udp', name)));
      return lists.flat().filter(({ isOffloaded }) => isOffloaded).length === answerers.length;
    };
    const accelerate = (answerers: readonly string[]) =>
      stage.cluster.eventually('datagrams on the fast path', async () => {
        assert.deepEqual(await ask(), answerers);
        return areOnFastPath(answerers);
      });
    const first = await ask();
    await accelerate(first);
    await runInNode('nft', usualWayCounters);
    assert.deepEqual(await ask({ bytes: 4000 }), first);
    assert.deepEqual(await ask({ recordsRoute: true }, [stage.scene]), first.slice(0, packets.length));
    assert.deepEqual(new Set(await ask({ ttl: 1 })), new Set(['expired']));
    assert.deepEqual(await ask(), first);
    assert.ok(await areOnFastPath(first));
    const counters = await runInNode('nft', 'list', 'table', 'inet', 'usual-way');
    const counts = [...counters.matchAll(/packets (\d+)/g)].map(([, count]) => Number(count));
    // Three fragments for each question and each answer.
    assert.deepEqual(counts, [12, 12, 2, 2, 2, 0]);
    await stage.scene.apply(served('B'));
    const next = first.map(() => 'B');
    await stage.cluster.eventually('another endpoint', async () => (await ask()).join() === next.join());
    await accelerate(next);
  });

  test('follows devices whose MTU gets smaller: large packets get smaller, in both directions', {
    skip: needsFlowtables,
  }, async () => {
    const { landscape } = stage;
    // Without this, devices would carry packets of many segments, whatever their MTU is.
    for (const host of ['pod', 'outside', 'A', 'C'] as const) {
      landscape.host(host).ip('link', 'set', 'eth0', 'gso_max_segs', '1');
    }
    const setMTU = async (mtu: number) => {
      for (const [host, device] of [
        ['A', 'podveth1'],
        ['outside', 'clients0'],
      ] as const) {
        await runInNode('ip', 'link', 'set', device, 'mtu', `${mtu}`);
        landscape.host(host).ip('link', 'set', 'eth0', 'mtu', `${mtu}`);
      }
    };
    await stage.cluster.start({ flags });
    await stage.scene.apply(servedBy('A'));
    await stage.scene.apply(servedBy('C'), 'other');
    // The client's packets must get smaller on the way to A, the answers of C on the way to the client.
    const toA = await openAll([{ from: 'pod', to: 'clusterIP' }]);
    const toC = await openAll([{ from: 'client', to: 'nodePort' }], 'other');
    const exchangeAll = async () => {
      const outcomes = await Promise.all([...toA, ...toC].map((open) => open.exchange(100_000)));
      assert.deepEqual(outcomes.map(answererOrKind), ['A', 'A', 'C', 'C']);
    };
    const allAccelerated = async () => {
      await accelerated(toA, 'A');
      await accelerated(toC, 'C');
    };
    await allAccelerated();
    await exchangeAll();
    try {
      await setMTU(1280);
      await exchangeAll();
      await allAccelerated();
      await exchangeAll();
    } finally {
      await setMTU(1500);
    }
    await closeAll([...toA, ...toC]);
  });

  test('ends for connections to departed endpoints, which get their reset; others come back to it', {
    skip: needsFlowtables,
  }, async () => {
    await stage.cluster.start({ flags: [...flags, '--reset-departed=tcp'] });
    await stage.scene.apply(servedBy('A'));
    await stage.scene.apply(servedBy('B'), 'stays');
    const [toA, toB] = [await openAll(waysIn), await openAll(waysIn, 'stays')];
    await accelerated(toA, 'A');
    await accelerated(toB, 'B');
    await stage.scene.apply(servedBy('B'));
    await stage.cluster.eventually('the reset', async () => {
      assert.deepEqual(await kindsOf(toB), ['B']);
      return (await tables()).split('@departed').length === 5;
    });
    await stage.cluster.eventually('no connection to A on the fast path', async () =>
      (await tracked('tcp', 'A')).every(({ isOffloaded }) => !isOffloaded),
    );
    assert.deepEqual(await kindsOf(toA), ['reset']);
    await accelerated(toB, 'B');
    assert.deepEqual(await differences(), []);
    await closeAll([...toA, ...toB]);
  });

  test('is repaired when another program damages it, while connections go on', {
    skip: needsFlowtables,
  }, async () => {
    await stage.cluster.start({ flags });
    await stage.scene.apply(servedBy('A'));
    const open = await openAll(waysIn);
    await accelerated(open, 'A');
    const before = await tables();
    const damages = [
      'flush chain ip kube-proxy fast-path/forward; delete flowtable ip kube-proxy fast-path',
      'flush chain ip6 kube-proxy fast-path/forward; delete chain ip6 kube-proxy fast-path/forward',
      'delete flowtable ip kube-proxy fast-path { hook ingress priority 0; devices = { podveth1 }; }',
      'add flowtable ip6 kube-proxy fast-path { hook ingress priority 0; devices = { lo }; }',
    ];
    for (const damage of damages) {
      await runInNode('nft', damage);
      await stage.cluster.eventually(`repair of: ${damage}`, async () => {
        assert.deepEqual(await kindsOf(open), ['A']);
        return (await tables()) === before;
      });
    }
    await accelerated(open, 'A');
    await closeAll(open);
  });

  test('leaves no trace when it is off: a start without it removes it, and connections go on', {
    skip: needsFlowtables,
  }, async () => {
    await stage.cluster.start();
    await stage.scene.apply(servedBy('A'));
    const without = await tables();
    assert.deepEqual(await traces(), []);
    assert.equal(await explained(stage.scene.book), undefined);
    await stage.cluster.stop();
    await stage.cluster.start({ flags });
    const open = await openAll(waysIn);
    await accelerated(open, 'A');
    assert.equal((await traces()).length, 6);
    await stage.cluster.stop();
    await stage.cluster.start();
    assert.equal(await tables(), without);
    assert.deepEqual(await kindsOf(open), ['A']);
    await closeAll(open);
  });

  test('ends when upstream takes over, begins again with this program, and a clean-up removes it', {
    skip: needsFlowtables,
  }, async () => {
    await stage.cluster.start({ flags });
    await stage.scene.apply(servedBy('A'));
    const open = await openAll([{ from: 'pod', to: 'clusterIP' }]);
    await accelerated(open, 'A');
    await stage.cluster.stop();
    const script = stage.cluster.path('script.nft');
    // Upstream removes chains with a slash in their name that it does not know.
    const chain = 'chain ip kube-proxy fast-path/forward';
    writeFileSync(script, `${upstreamStart()}\nflush ${chain}\ndelete ${chain}\n`);
    await runInNode('nft', '-f', script);
    assert.deepEqual(await kindsOf(open), ['A']);
    await closeAll(open);
    const page = readFileSync(resolve(import.meta.dirname, '../../docs/migration.md'), 'utf8');
    const [, command = ''] = /^```sh\n(for family in .*?)^```$/ms.exec(page) ?? [];
    await runInNode('sh', '-ec', command);
    assert.doesNotMatch(await runInNode('nft', 'list', 'table', 'ip', 'kube-proxy'), /fast-path/);
    await stage.cluster.start({ flags });
    const again = await openAll(waysIn);
    await accelerated(again, 'A');
    await closeAll(again);
    await stage.cluster.stop();
    const { code, stderr } = await run(kubeProxy, ['--config', stage.cluster.writeConfig(), '--cleanup']);
    assert.equal(code, 0, stderr);
    assert.equal(await runInNode('nft', 'list', 'ruleset'), '');
  });

  test('is reported as missing where the kernel has no flowtables, and services work', {
    skip: needsFlowtables ? false : 'this kernel has flowtables',
  }, async () => {
    await stage.cluster.start({ flags });
    await stage.scene.apply(servedBy('A'));
    const open = await openAll(waysIn);
    for (let i = 0; i < 10; i++) assert.deepEqual(await kindsOf(open), ['A']);
    for (const { fastPath } of await families()) {
      assert.equal(fastPath?.inUse, false);
      assert.match(fastPath?.reason ?? '', /this kernel has no flowtables/);
    }
    assert.equal(stage.cluster.program.stderr.split('No fast path').length, 3, stage.cluster.program.stderr);
    assert.deepEqual(await traces(), []);
    assert.deepEqual(await differences(), []);
    await closeAll(open);
  });
});
