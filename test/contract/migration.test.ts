/**
 * Migration from upstream's kube-proxy to this one and back, as in docs/migration.md. Upstream's rules are recorded. If
 * KUBE_PROXY_PEER is the path of an upstream kube-proxy, that program also runs before and after.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, afterEach, before, beforeEach, describe, type TestContext, test } from 'node:test';
import { enterNamespace, hasProgram, labUnavailable, run as runSync } from '../cluster/lab/namespace.ts';
import { eventually } from '../eventually.ts';
import { flavourUnavailable, useFlavour } from '../iptables/flavours.ts';
import { ipvsUnavailable } from '../ipvs/on-ipvs-kernel.ts';
import { type RecordedCluster, recordedClusters } from '../plan/recorded-cluster.ts';
import { kubeProxy, run } from '../program/run.ts';
import { addressBooks } from './address-book.ts';
import { Cluster } from './cluster.ts';
import { Landscape } from './landscape.ts';
import { Load } from './load.ts';
import { runInNode } from './node-commands.ts';
import { Peer } from './peer.ts';
import { Scene } from './scene.ts';
import { upstreamService, upstreamTable } from './upstream-table.ts';
import { everyWayIn, masqueraded, own, web } from './web-service.ts';

const skip = labUnavailable() ?? (hasProgram('nft', '--version') ? false : 'needs the program nft');
const namespace = skip ? '' : enterNamespace(import.meta.url);

const CONNECTIONS = 2_000;
const peer = process.env.KUBE_PROXY_PEER;
const noPeer = peer === undefined ? 'needs KUBE_PROXY_PEER' : false;
const ipvsObstacle = await ipvsUnavailable();
const families = ['iptables', 'ip6tables'] as const;
const tables = ['filter', 'nat', 'mangle'] as const;
/** Chains of the kubelet, which proxies leave alone. */
const notOfTheProxy = /KUBE-FIREWALL/;

describe('migration from and to upstream', { skip }, () => {
  let landscape: Landscape;
  before(async () => {
    landscape = await Landscape.build(namespace);
  });
  after(() => landscape.close());
  for (const flavour of ['nft', 'legacy'] as const) {
    describe(`on a node with iptables-${flavour}`, { skip: flavourUnavailable(flavour) ?? false }, () => {
      before(() => useFlavour(flavour));
      journeys(() => landscape);
    });
  }

  test('from upstream and back in ipvs mode, no connection fails and none breaks', {
    skip: ipvsObstacle ?? noPeer,
  }, async (t) => {
    const cluster = await Cluster.open('ipvs', ['IPv4', 'IPv6'], landscape);
    try {
      await assertSmooth(t, cluster, new Scene(cluster, addressBooks.IPv4));
    } finally {
      await cluster.close();
    }
  });
});

/** Runs upstream, then our program, then upstream again, while connections stay open and new ones are made. */
async function assertSmooth(t: TestContext, cluster: Cluster, scene: Scene): Promise<void> {
  const upstream = new Peer(peer ?? '', cluster);
  try {
    cluster.prepare();
    scene.put(web);
    await upstream.start();
    const open = await Promise.all(everyWayIn.map((packet) => scene.open(packet)));
    const answers = await Promise.all(open.map((conversation) => conversation.ask()));
    const load = new Load(scene, everyWayIn);
    await load.during(async () => {
      await upstream.stop();
      await cluster.start();
      await scene.apply({ ...web, endpoints: ['B', 'A'] });
      await cluster.stop();
      await upstream.start();
    }, CONNECTIONS);
    t.diagnostic(`${load.connections} connections`);
    assert.deepEqual(load.failures, []);
    assert.deepEqual(await Promise.all(open.map((conversation) => conversation.ask())), answers);
    for (const conversation of open) await conversation.close();
    await scene.apply({ ...web, endpoints: ['A'] });
    await scene.ready({ from: 'pod', to: 'clusterIP' });
    assert.equal(await scene.answerer({ from: 'pod', to: 'clusterIP' }), 'A');
  } finally {
    await upstream.stop();
  }
}

function journeys(landscape: () => Landscape): void {
  let clusters: Readonly<Record<'nftables' | 'iptables', Cluster>>;
  let scene: Scene;

  before(async () => {
    const open = (mode: string) => Cluster.open(mode, ['IPv4', 'IPv6'], landscape());
    clusters = { nftables: await open('nftables'), iptables: await open('iptables') };
  });
  afterEach(async () => {
    for (const cluster of Object.values(clusters)) {
      await cluster.stop();
      await cluster.wipe();
    }
  });
  after(async () => {
    for (const cluster of Object.values(clusters)) await cluster.close();
  });

  /** Lines of iptables-save that belong to a kube-proxy. */
  async function iptablesLines(): Promise<string[]> {
    const dumps = await Promise.all(families.map((program) => runInNode(`${program}-save`)));
    const lines = dumps.join('\n').split('\n');
    return lines.filter((line) => line.includes('KUBE-') && !notOfTheProxy.test(line));
  }

  /** Checks that the service of the scene works at every address. */
  async function assertServed(): Promise<void> {
    await scene.expect(
      { from: 'pod', to: 'clusterIP', expect: own },
      { from: 'client', to: 'nodePort', expect: masqueraded },
      { from: 'client', to: 'loadBalancer', expect: masqueraded },
    );
    await scene.otherFamily.expect({ from: 'pod', to: 'clusterIP', expect: own });
  }

  for (const mode of ['nftables', 'iptables'] as const) {
    describe(`${mode} mode`, () => {
      beforeEach(() => {
        scene = new Scene(clusters[mode], addressBooks.IPv4);
      });
      afterEach(() => scene.close());

      test('removes the iptables rules of upstream that it does not need, and nothing of others', async () => {
        restoreRecorded();
        const recorded = await iptablesLines();
        assert.ok(recorded.length > 100);
        scene.put(web);
        await clusters[mode].start();
        await assertServed();
        await gone('rules that upstream wrote', async () => {
          const left = new Set(await iptablesLines());
          const stale = recorded.filter((line) => /-(SVC|SVL|EXT|FW|SEP)-/.test(line) && left.has(line));
          return stale.length === 0 && (mode !== 'nftables' || left.size === 0);
        });
        assert.match(await runInNode('iptables-save'), notOfTheProxy);
      });

      test('removes the table that upstream wrote in nftables mode, or makes it its own', async () => {
        scene.put(web);
        const file = clusters[mode].path('upstream.nft');
        writeFileSync(file, upstreamTable(upstreamService(scene)));
        await runInNode('nft', '-f', file);
        await clusters[mode].start();
        await assertServed();
        await gone('the table that upstream wrote', async () => {
          const ruleset = await runInNode('nft', 'list', 'ruleset');
          const isThere = /table ip kube-proxy /.test(ruleset);
          return !/service-ULMVA6XW|cluster-ips /.test(ruleset) && isThere === (mode === 'nftables');
        });
      });

      test('from upstream and back, no connection fails and none breaks', { skip: noPeer }, (t) =>
        assertSmooth(t, clusters[mode], scene),
      );
    });
  }

  test('clean-up removes what upstream left, in either mode, and nothing of others', async () => {
    const cluster = clusters.iptables;
    scene = new Scene(cluster, addressBooks.IPv4);
    scene.put(web);
    restoreRecorded();
    const file = cluster.path('upstream.nft');
    writeFileSync(file, `${upstreamTable(upstreamService(scene))}\nadd table ip other\n`);
    await runInNode('nft', '-f', file);
    const { code, stderr } = await run(kubeProxy, ['--config', cluster.writeConfig(), '--cleanup']);
    assert.equal(code, 0, stderr);
    assert.deepEqual(await iptablesLines(), []);
    assert.match(await runInNode('iptables-save'), notOfTheProxy);
    const listed = await runInNode('nft', 'list', 'tables');
    assert.doesNotMatch(listed, /kube-proxy/);
    assert.match(listed, /table ip other/);
    scene.close();
  });

  test('a change of modes, there and back, fails no connection and ends with the rules of one mode', async () => {
    const { iptables, nftables } = clusters;
    scene = new Scene(iptables, addressBooks.IPv4);
    await iptables.start();
    await scene.apply(web);
    // The other API server gets the same service; numbers up to its number are then in use there, too.
    const service = scene.service();
    for (let n = 0; n < service.n; ) n = nftables.number(web).n;
    nftables.put(service);
    const load = new Load(scene, everyWayIn);
    await load.during(async () => {
      await iptables.stop();
      await nftables.start();
      await gone('rules of iptables mode', async () => (await iptablesLines()).length === 0);
      await nftables.stop();
      await iptables.start();
      const tables = () => runInNode('nft', 'list', 'tables');
      await gone('the table of nftables mode', async () => !/ kube-proxy/.test(await tables()));
    }, CONNECTIONS);
    assert.deepEqual(load.failures, []);
    await assertServed();
    nftables.remove(service);
    scene.close();
  });
}

/** Waits for the removal of another mode's rules, which happens after the first sync. */
function gone(what: string, isGone: () => Promise<boolean>): Promise<void> {
  return eventually(`the end of ${what}`, isGone, { everyMs: 20 });
}

/** How many rules a recorded cluster has. */
function size({ expect }: RecordedCluster): number {
  return expect.nat4.length + expect.nat6.length;
}

/** Puts rules into the kernel as upstream wrote them for a recorded cluster: all of them, in both families. */
function restoreRecorded(): void {
  const largest = recordedClusters().toSorted((a, b) => size(b.cluster) - size(a.cluster))[0];
  assert.ok(largest);
  for (const [i, program] of families.entries()) {
    const input = tables.flatMap((table) => {
      const lines = largest.cluster.expect[`${table}${i === 0 ? 4 : 6}`];
      // Counters are separate objects, which do not exist here.
      return [
        `*${table}`,
        ...lines.map((line) => line.replace(/-m nfacct --nfacct-name +\S+ /, '')),
        'COMMIT',
      ];
    });
    runSync('sh', '-c', `${program}-restore --noflush <<'END'\n${input.join('\n')}\nEND\n`);
  }
}
