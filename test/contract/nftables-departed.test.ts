/** nftables mode with --reset-departed: what clients see of endpoints that are gone. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DiffReport, ServiceList } from '../../src/inspect/api.ts';
import type { OpenConversation } from '../cluster/lab/host.ts';
import { enterNamespace, hasProgram, labUnavailable } from '../cluster/lab/namespace.ts';
import { predict } from '../explain/prediction.ts';
import { inspect } from '../program/served-pages.ts';
import { type AddressBook, addressBooks } from './address-book.ts';
import { Cluster } from './cluster.ts';
import { runInNode } from './node-commands.ts';
import { podPort } from './objects.ts';
import { Scene } from './scene.ts';
import { dualStackStage } from './stage.ts';
import type { Packet, ServiceSpec } from './story.ts';
import { everyWayIn, own } from './web-service.ts';

const skip = labUnavailable() ?? (hasProgram('nft', '--version') ? false : 'needs the program nft');
const namespace = skip ? '' : enterNamespace(import.meta.url);

const flags = ['--reset-departed=tcp'];
const annotation = 'kube-proxy-ts.dev/reset-departed';
/** Through the node; also a pod that reaches itself, which the node masquerades. */
const waysIn: readonly Packet[] = [
  ...everyWayIn.filter(({ from }) => from !== 'node'),
  { from: 'A', to: 'clusterIP' },
];
const fromNode: readonly Packet[] = [{ from: 'node', to: 'clusterIP' }];

const servedBy = (...endpoints: ServiceSpec['endpoints']): ServiceSpec => ({
  nodePort: true,
  loadBalancer: true,
  endpoints,
});

describe('connections to endpoints that are gone', { skip }, () => {
  const stage = dualStackStage('nftables', namespace);

  const tables = async (): Promise<string> => {
    const list = (family: string) => runInNode('nft', 'list', 'table', family, 'kube-proxy');
    return `${await list('ip')}${await list('ip6')}`;
  };

  /** The chains that the flag changes, and the names of all sets. */
  const layout = async (): Promise<string[]> =>
    ((await tables()).match(/^\t(chain filter-(forward|output) \{.*?^\t\}|(set|map) \S+)/gms) ?? []).sort();

  /** The elements of the two sets. */
  const departed = async (): Promise<string[]> => {
    const sets = [...(await tables()).matchAll(/set departed \{[^}]*elements = \{([^}]*)\}/g)];
    return sets.flatMap(([, list = '']) => list.split(',').map((text) => text.trim().split(' ')[0] ?? ''));
  };

  const departs = (...names: readonly ('A' | 'B' | 'C')[]): Promise<void> =>
    stage.cluster.eventually('the set of departed endpoints', async () => {
      const wanted = names.flatMap((name) => stage.views.map(({ book }) => book.hosts[name]));
      assert.deepEqual((await departed()).sort(), wanted.sort());
      return true;
    });

  async function openAll(packets: readonly Packet[], name = 'web'): Promise<OpenConversation[]> {
    const opening = stage.views.flatMap((view) =>
      packets.map((packet) => view.open({ ...packet, of: name })),
    );
    return Promise.all(opening);
  }

  const kindsOf = async (open: readonly OpenConversation[]): Promise<string[]> => {
    const outcomes = await Promise.all(open.map((conversation) => conversation.outcome()));
    return [...new Set(outcomes.map((outcome) => (outcome.kind === 'answered' ? outcome.by : outcome.kind)))];
  };

  /** Asks `explain` about a packet of the pod: it has to understand the rules of the kernel, and agree with them. */
  async function explains({ family, hosts, service }: AddressBook): Promise<void> {
    const { clusterIP: destination } = service(stage.scene.service().n);
    const packet = {
      family,
      host: 'pod',
      source: hosts.pod,
      destination,
      port: 80,
      transport: 'tcp',
    } as const;
    const { kernelUnknown, differences } = await predict(packet);
    assert.deepEqual([kernelUnknown, ...differences], [null]);
  }

  test('end with a reset at the next packet, whoever the client is; others go on, and so do direct ones', async () => {
    await stage.cluster.start({ flags });
    await stage.scene.apply(servedBy('A'));
    await stage.scene.apply(servedBy('B'), 'stays');
    const before = await layout();
    const toA = await openAll(waysIn);
    const toB = await openAll(waysIn, 'stays');
    const direct = await Promise.all(
      stage.views.map(({ book }) =>
        stage.landscape.host('pod').open({ address: book.hosts.A, port: podPort }),
      ),
    );
    await stage.scene.apply(servedBy({ at: 'A', state: 'draining' }, 'B'));
    assert.deepEqual(await kindsOf(toA), ['A']);
    assert.equal(await departed().then((list) => list.length), 0);
    await stage.scene.apply(servedBy('B'));
    await departs('A');
    assert.deepEqual(await kindsOf(toA), ['reset']);
    assert.deepEqual(await kindsOf(toB), ['B']);
    assert.deepEqual(await kindsOf(direct), ['A']);
    const { items } = await inspect<DiffReport>('diff');
    assert.deepEqual(items, []);
    for (const { book } of stage.views) await explains(book);
    await stage.scene.apply(servedBy('A'));
    assert.deepEqual(await layout(), before);
    await stage.scene.expect(
      ...waysIn.map((packet) => ({
        ...packet,
        expect: packet.from === 'pod' ? { A: 'OWN' as const } : { A: 'MASQ' as const },
      })),
    );
    for (const conversation of [...toA, ...toB, ...direct]) await conversation.close();
  });

  test('of processes of this node end at once, and those to other endpoints go on', async () => {
    await stage.cluster.start({ flags });
    await stage.scene.apply(servedBy('A'));
    await stage.scene.apply(servedBy('B'), 'stays');
    const toA = await openAll(fromNode);
    const toB = await openAll([...fromNode, ...waysIn], 'stays');
    const fromOthers = await openAll(waysIn);
    await stage.scene.apply(servedBy('B'));
    const aborted = { kind: 'failed', code: 'ECONNABORTED' };
    assert.deepEqual(await Promise.all(toA.map((conversation) => conversation.ended())), [aborted, aborted]);
    assert.deepEqual(await kindsOf(toB), ['B']);
    assert.deepEqual(await kindsOf(fromOthers), ['reset']);
    for (const conversation of [...toA, ...toB, ...fromOthers]) await conversation.close();
  });

  test('of processes of this node end with a reset where the kernel cannot end sockets', async () => {
    await stage.cluster.start();
    await stage.scene.apply(servedBy('A'));
    const open = await openAll(fromNode);
    await stage.cluster.stop();
    for (const { book } of stage.views) {
      const family = book.family === 'IPv4' ? 'ip' : 'ip6';
      const rule = `ct status dnat ct direction original ${family} daddr . tcp dport @departed tcp flags ! rst reject with tcp reset`;
      await runInNode(
        'nft',
        `add set ${family} kube-proxy departed { type ipv${family === 'ip' ? 4 : 6}_addr . inet_service; flags timeout; timeout 20m; }; add element ${family} kube-proxy departed { ${book.hosts.A} . ${podPort} }; insert rule ${family} kube-proxy filter-output ${rule}`,
      );
    }
    assert.deepEqual(await kindsOf(open), ['reset']);
    for (const conversation of open) await conversation.close();
  });

  test('are left alone without the flag, and ended for a Service whose annotation says so', async () => {
    await stage.cluster.start();
    await stage.scene.apply(servedBy('A'));
    await stage.scene.apply({ ...servedBy('C'), annotations: { [annotation]: 'tcp' } }, 'asks');
    const plain = await openAll(waysIn);
    const asking = await openAll(waysIn, 'asks');
    stage.scene.put({ ...servedBy('B'), annotations: { [annotation]: 'tcp' } }, 'asks');
    await stage.scene.apply(servedBy('B'));
    await departs('C');
    assert.deepEqual(await kindsOf(plain), ['A']);
    assert.deepEqual(await kindsOf(asking), ['reset']);
    const { items } = await inspect<ServiceList>('services');
    const asked = items.filter(({ resetsDeparted }) => resetsDeparted).map(({ family }) => family);
    assert.deepEqual(asked.sort(), ['IPv4', 'IPv6']);
    for (const conversation of [...plain, ...asking]) await conversation.close();
  });

  test('are left alone while another Service names the endpoint, and go on when it comes back', async () => {
    await stage.cluster.start({ flags });
    await stage.scene.apply(servedBy('A'));
    await stage.scene.apply(
      { ...servedBy({ at: 'A', state: 'unready' }), annotations: { [annotation]: 'off' } },
      'other',
    );
    const open = await openAll(waysIn);
    await stage.scene.apply(servedBy('C'));
    await stage.scene.apply(servedBy('B'));
    await departs('C');
    assert.deepEqual(await kindsOf(open), ['A']);
    await stage.scene.apply(servedBy('B'), 'other');
    await departs('A', 'C');
    await stage.scene.apply(servedBy('A'), 'new');
    await departs('C');
    assert.deepEqual(await kindsOf(open), ['A']);
    for (const conversation of open) await conversation.close();
  });

  test('are ended also after another program has emptied the set; a restart forgets what was gone', async () => {
    await stage.cluster.start({ flags });
    await stage.scene.apply(servedBy('A'));
    const [first = assert.fail(), ...rest] = await openAll(waysIn);
    const before = await layout();
    await stage.scene.apply(servedBy('B'));
    await departs('A');
    await runInNode('nft', 'flush set ip kube-proxy departed; flush chain ip6 kube-proxy filter-forward');
    await departs('A');
    await stage.cluster.eventually('the rule', async () => (await tables()).split('@departed').length === 5);
    assert.deepEqual(await kindsOf([first]), ['reset']);
    await stage.cluster.restart();
    assert.doesNotMatch(await tables(), /departed/);
    assert.deepEqual(await kindsOf(rest), ['A']);
    await stage.scene.expect({ from: 'pod', to: 'clusterIP', expect: { B: own.B } });
    await stage.scene.apply(servedBy('A'));
    assert.deepEqual(await layout(), before);
    for (const conversation of [first, ...rest]) await conversation.close();
  });

  test('are left alone in another mode, which reports the flag and the annotation once and serves as usual', async () => {
    const other = await Cluster.open('userspace', ['IPv4', 'IPv6'], stage.landscape);
    const story = new Scene(other, addressBooks.IPv4);
    try {
      await other.start({ flags });
      await story.apply({ ...servedBy('A'), annotations: { [annotation]: 'tcp' } });
      await story.expect({ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } });
      const { stderr } = other.program;
      assert.equal(stderr.split('Flag --reset-departed has no effect in this proxy mode').length, 2, stderr);
      const reports = stderr
        .split('\n')
        .filter((line) => line.includes('is not possible in this proxy mode'));
      assert.equal(new Set(reports.map((line) => /IPv[46]/.exec(line)?.[0])).size, reports.length, stderr);
      assert.ok(reports.length > 0, stderr);
    } finally {
      story.close();
      await other.close();
      await runInNode('nft', 'flush', 'ruleset');
    }
  });
});
