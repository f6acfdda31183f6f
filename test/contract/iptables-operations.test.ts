/** iptables mode, on both kinds of iptables, during restarts, changes by other programs, migration and clean-up. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { enterNamespace, labUnavailable, run as runSync } from '../cluster/lab/namespace.ts';
import { type Flavour, flavourUnavailable, useFlavour } from '../iptables/flavours.ts';
import { chainsOf, tableOf } from '../iptables/normalise.ts';
import { recordedClusters } from '../plan/recorded-cluster.ts';
import { kubeProxy, run } from '../program/run.ts';
import { addressBooks } from './address-book.ts';
import { Cluster } from './cluster.ts';
import { Landscape } from './landscape.ts';
import { Load } from './load.ts';
import { runInNode } from './node-commands.ts';
import { Scene } from './scene.ts';
import { everyWayIn, masqueraded, own, web } from './web-service.ts';

const skip = labUnavailable() ?? false;
const namespace = skip ? '' : enterNamespace(import.meta.url);

const CONNECTIONS = 2_000;
const OTHER_SERVICES = 500;
const families = ['iptables', 'ip6tables'] as const;
const tables = ['filter', 'nat', 'mangle'] as const;

describe('iptables mode in operation', { skip }, () => {
  let landscape: Landscape;
  before(async () => {
    landscape = await Landscape.build(namespace);
  });
  after(() => landscape.close());
  for (const flavour of ['nft', 'legacy'] as const) {
    describe(`with iptables-${flavour}`, { skip: flavourUnavailable(flavour) ?? false }, () =>
      operations(flavour, () => landscape),
    );
  }
});

function operations(flavour: Flavour, landscape: () => Landscape): void {
  let cluster: Cluster;
  let scene: Scene;

  before(async () => {
    useFlavour(flavour);
    cluster = await Cluster.open('iptables', ['IPv4', 'IPv6'], landscape());
  });
  beforeEach(() => {
    scene = new Scene(cluster, addressBooks.IPv4);
  });
  afterEach(async () => {
    scene.close();
    await cluster.stop();
    await cluster.wipe();
  });
  after(() => cluster.close());

  const iptables = (...args: readonly string[]): Promise<string> => runInNode('iptables', '-w', '5', ...args);
  const repairs = (): Promise<number> => cluster.metric('kubeproxy_ts_repairs_total');

  /** Rules and chains of both families, without counters. */
  async function listing(): Promise<string> {
    const dumps = await Promise.all(families.map((program) => runInNode(`${program}-save`)));
    return dumps
      .flatMap((dump) => tables.map((table) => [table, ...tableOf(dump, table).sort()].join('\n')))
      .join('\n');
  }

  /** Changes the rules as another program would, and waits until the proxy has undone and counted that. */
  async function repaired(t: TestContext, what: string, change: () => Promise<unknown>): Promise<void> {
    // With iptables-legacy, the program cannot distinguish a change during its own write from that write.
    await cluster.quiet();
    const counted = await repairs();
    const whole = await listing();
    await change();
    const changed = performance.now();
    // Wait for the count first: equal rules could also mean that the change has not happened yet.
    await cluster.eventually(`${what}: counted`, async () => (await repairs()) > counted);
    await cluster.eventually(`${what}: put right`, async () => (await listing()) === whole);
    t.diagnostic(`${what}: put right within ${Math.round(performance.now() - changed)} ms`);
  }

  test('killed and started again under load, it fails no connection and breaks none', async (t) => {
    await cluster.start();
    for (let i = 0; i < OTHER_SERVICES; i++) scene.put({ ...web, endpoints: ['C', 'D'] }, `other ${i}`);
    await scene.apply(web);
    const open = await Promise.all(everyWayIn.map((packet) => scene.open(packet)));
    const before = await Promise.all(open.map((conversation) => conversation.ask()));
    const load = new Load(scene, everyWayIn);
    await load.during(async () => {
      for (let i = 0; i < 2; i++) await cluster.restart();
    }, CONNECTIONS);
    t.diagnostic(`${load.connections} connections`);
    assert.deepEqual(load.failures, []);
    assert.deepEqual(await Promise.all(open.map((conversation) => conversation.ask())), before);
    for (const conversation of open) await conversation.close();
  });

  test('while services and endpoints come and go, no connection to another service fails', async () => {
    await cluster.start();
    await scene.apply(web);
    const load = new Load(scene, everyWayIn);
    await load.during(async () => {
      for (let i = 0; i < 20; i++) {
        await scene.apply({ ...web, endpoints: i % 2 ? ['A'] : ['B', 'C', 'D'] }, 'busy');
        if (i % 5 === 4) await scene.remove('busy');
      }
    }, CONNECTIONS);
    assert.deepEqual(load.failures, []);
    assert.equal(await repairs(), 0, 'its own writes are not taken for those of others');
  });

  test('changes of its rules by other programs are undone and counted', async (t) => {
    await cluster.start();
    await scene.apply({ ...web, affinitySeconds: 60 }, 'sticky');
    await scene.apply(web);
    assert.equal(await repairs(), 0);
    await repaired(t, 'flush of all tables', () => cluster.wipe());
    const { n } = scene.service();
    const [chain = ''] =
      /KUBE-SVC-\w{16}/.exec(
        (await iptables('-t', 'nat', '-S', 'KUBE-SERVICES'))
          .split('\n')
          .find((rule) => rule.includes(`${scene.book.service(n).clusterIP}/32`)) ?? '',
      ) ?? [];
    await repaired(t, 'flush of a chain', () => iptables('-t', 'nat', '-F', chain));
    await repaired(t, 'removal of a jump', () =>
      iptables('-t', 'nat', '-D', 'PREROUTING', ...jumpArguments, '-j', 'KUBE-SERVICES'),
    );
  });

  test('every flush of a chain is repaired, however many there are, and reported', async () => {
    await cluster.start();
    await scene.apply(web);
    const chain = () => iptables('-t', 'nat', '-S', 'KUBE-POSTROUTING');
    for (let i = 0; i < 6; i++) {
      await cluster.quiet();
      await iptables('-t', 'nat', '-F', 'KUBE-POSTROUTING');
      await cluster.eventually('the flush is undone', async () => (await chain()).includes('MASQUERADE'));
    }
    await cluster.program.logs(/keeps changing the iptables ruleset; repairs take at most 20 % of a core/);
  });

  test('rules of other programs are left alone', async () => {
    await cluster.start();
    await scene.apply(web);
    await iptables('-t', 'nat', '-N', 'OTHER');
    await iptables('-t', 'nat', '-I', 'PREROUTING', '-j', 'OTHER');
    await sleep(700);
    await iptables('-t', 'nat', '-D', 'PREROUTING', '-j', 'OTHER');
    await iptables('-t', 'nat', '-X', 'OTHER');
    await sleep(700);
    await scene.apply({ ...web, endpoints: ['A'] });
    assert.equal(await repairs(), 0);
  });

  test('all changes take effect in the end while iptables-restore fails now and then', async () => {
    const path = process.env.PATH;
    try {
      process.env.PATH = `${failingRestore(cluster.path('failing'))}${delimiter}${path}`;
      await cluster.start();
      for (let i = 0; i < 6; i++) await scene.apply({ ...web, endpoints: i % 2 ? ['A', 'B'] : ['C'] });
      await scene.expect(
        { from: 'pod', to: 'clusterIP', expect: own },
        { from: 'client', to: 'nodePort', expect: masqueraded },
      );
      assert.ok((await cluster.metric('kubeproxy_sync_proxy_rules_iptables_restore_failures_total')) > 0);
      assert.match(cluster.program.stderr, /iptables-restore.*exit status 3: line 2 is not to my liking/);
    } finally {
      process.env.PATH = path;
    }
  });

  test('clean-up removes its rules and no others, and finds nothing to do the second time', async () => {
    await iptables('-t', 'nat', '-N', 'OTHER');
    await iptables('-t', 'nat', '-I', 'PREROUTING', '-j', 'OTHER');
    await runInNode('sh', '-c', 'echo 0 > /proc/sys/net/ipv4/conf/all/route_localnet');
    await cluster.start();
    await scene.apply(web);
    await cluster.stop();
    for (let i = 0; i < 2; i++) {
      const { code, stderr } = await run(kubeProxy, ['--config', cluster.writeConfig(), '--cleanup']);
      assert.equal(code, 0, stderr);
      const left = (await listing())
        .split('\n')
        .filter((line) => line.includes('KUBE-') || line.includes('OTHER'));
      assert.deepEqual(left, ['-A PREROUTING -j OTHER', ':OTHER - [0:0]']);
    }
  });

  test('it takes over rules of upstream without a failed connection, and upstream can take them back', async () => {
    await cluster.start();
    await scene.apply(web);
    await cluster.quiet();
    const whole = await listing();
    await cluster.stop();
    for (const [i, program] of families.entries()) restoreRecorded(program, i === 0 ? '4' : '6');
    assert.match(await listing(), /KUBE-SEP-ANZGLDC3GRVI2YLB/);
    const load = new Load(scene, everyWayIn);
    await load.during(async () => {
      await sleep(100);
      await cluster.start();
    }, CONNECTIONS);
    assert.deepEqual(load.failures, []);
    await cluster.eventually(
      'the end of chains of services that do not exist',
      async () => (await listing()) === whole,
    );
    await cluster.stop();
    const names = (await listing()).split('\n').filter((line) => line.startsWith(':KUBE-'));
    assert.deepEqual(
      names.filter((name) => !upstreamChain.test(name)),
      [],
    );
  });

  test('a change to nftables mode and back leaves only the rules of the current mode', async () => {
    const other = await Cluster.open('nftables', ['IPv4', 'IPv6'], landscape());
    try {
      await cluster.start();
      await cluster.stop();
      await other.start();
      await other.eventually(
        'the end of the rules of iptables mode',
        async () => !/KUBE-(?!FIREWALL)/.test(await listing()),
      );
      await other.stop();
      await cluster.start();
      const tables = () => runInNode('nft', 'list', 'tables');
      await cluster.eventually(
        'the end of the table of nftables mode',
        async () => !/kube-proxy/.test(await tables()),
      );
      assert.match(await listing(), /KUBE-SERVICES/);
    } finally {
      await other.close();
    }
  });
}

const jumpArguments = ['-m', 'comment', '--comment', 'kubernetes service portals'];
const upstreamChain =
  /^:KUBE-((SVC|SVL|EXT|FW|SEP)-[A-Z2-7]{16}|SERVICES|EXTERNAL-SERVICES|NODEPORTS|POSTROUTING|MARK-MASQ|FORWARD|PROXY-FIREWALL|FIREWALL|PROXY-CANARY) /;

/** Adds those chains of a recorded cluster that belong to no service of this test. */
function restoreRecorded(program: string, family: '4' | '6'): void {
  const [recorded] = recordedClusters();
  const lines = recorded?.cluster.expect[`nat${family}`] ?? [];
  const chains = [...chainsOf(lines)].filter(([chain]) => /^KUBE-(SVC|SVL|EXT|FW|SEP)-/.test(chain));
  const input = [
    '*nat',
    ...chains.map(([chain]) => `:${chain} - [0:0]`),
    ...chains.flatMap(([, rules]) => rules),
    'COMMIT',
    '',
  ];
  runSync('sh', '-c', `${program}-restore --noflush <<'END'\n${input.join('\n')}END\n`);
}

/** Makes a directory with an iptables-restore that fails every third time and else calls the real one. */
function failingRestore(directory: string): string {
  mkdirSync(directory, { recursive: true });
  for (const program of families) {
    const real = runSync('sh', '-c', `command -v ${program}-restore`).trim();
    const script = `#!/bin/sh
count=$(($(cat '${directory}/${program}.count' 2>/dev/null || echo 0) + 1))
echo $count > '${directory}/${program}.count'
[ $((count % 3)) -ne 0 ] || { cat >/dev/null; echo 'line 2 is not to my liking' >&2; exit 3; }
exec '${real}' "$@"
`;
    const file = join(directory, `${program}-restore`);
    writeFileSync(file, script);
    chmodSync(file, 0o755);
  }
  return directory;
}
