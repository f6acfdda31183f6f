/** nftables mode during restarts, changes by other programs, migration and clean-up. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { enterNamespace, hasProgram, labUnavailable } from '../cluster/lab/namespace.ts';
import { kubeProxy, run } from '../program/run.ts';
import { Load } from './load.ts';
import { runInNode } from './node-commands.ts';
import { dualStackStage } from './stage.ts';
import type { ServiceSpec } from './story.ts';
import {
  baseChains,
  upstreamChains,
  upstreamService,
  upstreamSets,
  upstreamStart,
  upstreamTable,
} from './upstream-table.ts';
import { everyWayIn, own, web } from './web-service.ts';

const skip = labUnavailable() ?? (hasProgram('nft', '--version') ? false : 'needs the program nft');
const namespace = skip ? '' : enterNamespace(import.meta.url);

const CONNECTIONS = 2_000;
const OTHER_SERVICES = 300;

describe('nftables mode in operation', { skip }, () => {
  const stage = dualStackStage('nftables', namespace);

  const nft = (...script: readonly string[]): Promise<string> => runInNode('nft', ...script);

  /** The table as text, sorted, so that the order of its creation does not matter. */
  async function listing(family: 'ip' | 'ip6' = 'ip'): Promise<string> {
    const text = await nft('list', 'table', family, 'kube-proxy').catch(() => '');
    const elements = text.replaceAll(/elements = \{([^}]*)\}/g, (_, list: string) => {
      return `elements = ${list
        .split(',')
        .map((element) => element.trim())
        .sort()
        .join()}`;
    });
    return elements.split('\n').sort().join('\n');
  }

  /** Changes the rules as another program would, and waits until the proxy has undone and counted that. */
  async function repaired(
    t: TestContext,
    what: string,
    command: readonly string[],
    isUndone: () => Promise<boolean>,
  ): Promise<void> {
    const counted = await repairs();
    await nft(...command);
    const changed = performance.now();
    await stage.cluster.eventually(`${what}: put right`, isUndone, { everyMs: 5 });
    t.diagnostic(`${what}: put right within ${Math.round(performance.now() - changed)} ms`);
    await stage.cluster.eventually(`${what}: counted`, async () => (await repairs()) > counted);
  }

  async function repairs(): Promise<number> {
    return stage.cluster.metric('kubeproxy_ts_repairs_total');
  }

  /** The endpoint that serves each of many clients of a service. */
  function choices(name = 'web'): Promise<string[]> {
    const clients = Array.from({ length: 24 }, (_, i) => stage.scene.book.crowd(i));
    return Promise.all(
      clients.map((source) => stage.scene.answerer({ from: 'client', source, to: 'clusterIP', of: name })),
    );
  }

  test('killed and started again under load, it fails no connection, breaks none and forgets no client', async (t) => {
    await stage.cluster.start();
    for (let i = 0; i < OTHER_SERVICES; i++) stage.scene.put({ ...web, endpoints: ['C', 'D'] }, `other ${i}`);
    stage.scene.put({ ...web, affinitySeconds: 600 }, 'sticky');
    await stage.scene.apply(web);
    const open = await Promise.all(everyWayIn.map((packet) => stage.scene.open(packet)));
    const before = await Promise.all(open.map((conversation) => conversation.ask()));
    const chosen = await choices('sticky');
    const load = new Load(stage.scene, everyWayIn);
    await load.during(async () => {
      for (let i = 0; i < 2; i++) await stage.cluster.restart();
    }, CONNECTIONS);
    t.diagnostic(`${load.connections} connections`);
    assert.deepEqual(load.failures, []);
    assert.deepEqual(await Promise.all(open.map((conversation) => conversation.ask())), before);
    assert.equal(new Set(chosen).size, 2);
    assert.deepEqual(await choices('sticky'), chosen);
    for (const conversation of open) await conversation.close();
  });

  test('while services and endpoints come and go, no connection to another service fails', async () => {
    await stage.cluster.start();
    await stage.scene.apply(web);
    const load = new Load(stage.scene, everyWayIn);
    await load.during(async () => {
      for (let i = 0; i < 20; i++) {
        await stage.scene.apply({ ...web, endpoints: i % 2 ? ['A'] : ['B', 'C', 'D'] }, 'busy');
        if (i % 5 === 4) await stage.scene.remove('busy');
      }
    }, CONNECTIONS);
    assert.deepEqual(load.failures, []);
  });

  test('while its own endpoints come and go, no connection fails as long as one is left', async () => {
    await stage.cluster.start();
    await stage.scene.apply(web);
    const load = new Load(stage.scene, everyWayIn);
    await load.during(async () => {
      for (let i = 0; i < 20; i++)
        await stage.scene.apply({ ...web, endpoints: [['A'], ['A', 'B'], ['B']][i % 3] as ['A'] });
    }, CONNECTIONS);
    assert.deepEqual(load.failures, []);
  });

  test('changes of its rules by other programs are undone and counted, its own are not', async (t) => {
    await stage.cluster.start();
    await stage.scene.apply({ ...web, affinitySeconds: 60 }, 'sticky');
    await stage.scene.apply(web);
    for (let i = 0; i < 10; i++) {
      await stage.scene.apply(
        { ...web, ranges: ['clients'], affinitySeconds: 9, endpoints: i % 2 ? ['A'] : [] },
        'busy',
      );
    }
    await stage.scene.remove('busy');
    assert.equal(await repairs(), 0, 'its own writes are not taken for those of others');
    await repaired(t, 'flush ruleset', ['flush', 'ruleset'], async () => {
      const v6 = stage.scene.otherFamily;
      const answers = await Promise.all(
        [stage.scene, v6].map((each) => each.outcome({ from: 'pod', to: 'clusterIP' })),
      );
      return answers.every((answer) => answer.kind === 'answered' && answer.by !== 'world');
    });
    await stage.cluster.quiet();
    const whole = await listing();
    const isWhole = async () => (await listing()) === whole;
    const { clusterIP } = stage.scene.book.service(stage.scene.service().n);
    const element = `delete element ip kube-proxy cluster-addresses { ${clusterIP} }`;
    await repaired(t, 'element deleted', [element], isWhole);
    await repaired(t, 'rule inserted', ['insert rule ip kube-proxy nat-prerouting accept'], isWhole);
    await stage.scene.expect(
      { from: 'pod', to: 'clusterIP', expect: own },
      { from: 'pod', to: 'clusterIP', port: 81, expect: 'REJECT' },
      { from: 'pod', to: 'unallocated', expect: 'DROP' },
    );
  });

  test('tables of other programs are left alone', async () => {
    await stage.cluster.start();
    await stage.scene.apply(web);
    await nft('add table ip other; add chain ip other c; add rule ip other c accept; delete table ip other');
    await stage.scene.apply({ ...web, endpoints: ['A'] });
    assert.equal(await repairs(), 0);
  });

  test('it takes over a table of upstream without a failed connection', async () => {
    await stage.cluster.start();
    await stage.scene.apply(web);
    await stage.cluster.stop();
    await loadScript(`flush ruleset\n${upstreamTable(upstreamService(stage.scene))}`);
    const load = new Load(stage.scene, [
      { from: 'pod', to: 'clusterIP' },
      { from: 'client', to: 'nodePort' },
    ]);
    await load.during(async () => {
      await sleep(100);
      await stage.cluster.start();
    }, CONNECTIONS);
    assert.deepEqual(load.failures, []);
    assert.doesNotMatch(await listing(), /service-ULMVA6XW|affinity-|cluster-ips |filter-prerouting \{/);
    await stage.scene.expect(
      { from: 'pod', to: 'clusterIP', expect: own },
      { from: 'client', to: 'loadBalancer', expect: { A: 'MASQ', B: 'MASQ' } },
    );
  });

  test('upstream can take the table back', async () => {
    await stage.cluster.start();
    await stage.scene.apply(web);
    await stage.scene.apply({ ...web, affinitySeconds: 60, ranges: ['clients'] }, 'sticky');
    await stage.cluster.stop();
    const names = [...(await listing()).matchAll(/^\t(chain|set|map|counter) (\S+) \{/gm)].map(
      ([, kind, name]) => ({ kind, name: name ?? '' }),
    );
    assert.ok(names.length > 20);
    const theirs = [...upstreamChains, ...upstreamSets.map((set) => set.split(' ')[3] ?? '')];
    const clashes = names.filter(
      ({ name }) => theirs.includes(name) || name.startsWith('affinity-') || name.includes('/'),
    );
    assert.deepEqual(clashes, []);
    const { nftables } = JSON.parse(await nft('-j', 'list', 'chains')) as {
      nftables: { chain?: { family: string; name: string; hook?: string } }[];
    };
    const bases = nftables.flatMap(({ chain }) => (chain?.hook ? [`${chain.family} ${chain.name}`] : []));
    const expected = baseChains.map((base) => base.split(' ')[0]);
    assert.deepEqual(
      bases.sort(),
      [...expected.map((name) => `ip ${name}`), ...expected.map((name) => `ip6 ${name}`)].sort(),
    );
    await loadScript(upstreamStart());
    await assertLeftoversAreRemoved();
  });

  /** Runs the command of docs/migration.md after upstream has taken over the IPv4 table and filled it. */
  async function assertLeftoversAreRemoved(): Promise<void> {
    const page = readFileSync(resolve(import.meta.dirname, '../../docs/migration.md'), 'utf8');
    const [, command = ''] = /^```sh\n(for family in .*?)^```$/ms.exec(page) ?? [];
    assert.match(command, /nft -f -/);
    await loadScript(upstreamTable(upstreamService(stage.scene)));
    const ours = await listing('ip6');
    const rules = async () => (await nft('list', 'chain', 'ip', 'kube-proxy', 'services')).trim();
    const before = await rules();
    await runInNode('sh', '-ec', command);
    const left = [...(await listing()).matchAll(/^\t(?:chain|set|map|counter) (\S+) \{/gm)].map(
      ([, name = '']) => name,
    );
    const isUpstreams = (name: string) =>
      [...baseChains, ...upstreamChains].some((chain) => chain.split(' ')[0] === name) ||
      upstreamSets.some((set) => set.split(' ')[3] === name) ||
      /\/|^affinity-|^filter-prerouting$/.test(name);
    assert.deepEqual(
      left.filter((name) => !isUpstreams(name)),
      [],
    );
    assert.ok(left.length > 20);
    assert.equal(await rules(), before);
    await stage.scene.expect({ from: 'pod', to: 'clusterIP', expect: own });
    assert.equal(await listing('ip6'), ours);
  }

  test('clean-up removes its tables and no other, and finds nothing to do the second time', async () => {
    await stage.cluster.start();
    await stage.scene.apply(web);
    await stage.cluster.stop();
    await nft('add table ip other');
    for (let i = 0; i < 2; i++) {
      const { code, stderr } = await run(kubeProxy, ['--config', stage.cluster.writeConfig(), '--cleanup']);
      assert.equal(code, 0, stderr);
      assert.equal((await nft('list', 'tables')).trim(), 'table ip other');
    }
    await nft('delete table ip other');
  });

  test('affinity outlives restarts, repairs of other objects and changes of the service', async (t) => {
    await stage.cluster.start();
    const sticky: ServiceSpec = { ...web, affinitySeconds: 600 };
    await stage.scene.apply(sticky);
    const first = await choices();
    assert.equal(new Set(first).size, 2);
    await stage.cluster.restart();
    assert.deepEqual(await choices(), first);
    const chain = () => nft('list', 'chain', 'ip', 'kube-proxy', 'nat-output');
    const whole = await chain();
    await repaired(
      t,
      'rule inserted',
      ['insert rule ip kube-proxy nat-output accept'],
      async () => (await chain()) === whole,
    );
    assert.deepEqual(await choices(), first);
    await stage.scene.apply({ ...sticky, endpoints: ['A', 'B', 'C'] });
    await stage.cluster.restart();
    assert.deepEqual(await choices(), first);
  });

  async function loadScript(script: string): Promise<void> {
    const file = stage.cluster.path('script.nft');
    writeFileSync(file, script);
    await nft('-f', file);
  }
});
