/** ipvs mode during restarts, changes by other programs, migration and clean-up. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pollIntervalMs } from '../../src/backends/ipvs/graceful.ts';
import { messageOf } from '../../src/lib/thrown.ts';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { addressBooks } from '../contract/address-book.ts';
import { Cluster } from '../contract/cluster.ts';
import { Landscape } from '../contract/landscape.ts';
import { Load } from '../contract/load.ts';
import { runInNode } from '../contract/node-commands.ts';
import { nodePortOf, podPort } from '../contract/objects.ts';
import { Scene } from '../contract/scene.ts';
import { IGNORE, type Packet, type Setting, type Target } from '../contract/story.ts';
import { everyWayIn, masqueraded, own, web } from '../contract/web-service.ts';
import { kubeProxy, run } from '../program/run.ts';
import {
  boundAddresses,
  connectionsSince,
  realServers,
  schedulers,
  setEntries,
  snapshot,
} from './node-state.ts';
import { ipvsUnavailable } from './on-ipvs-kernel.ts';

const skip = labUnavailable() ?? (await ipvsUnavailable()) ?? false;
const namespace = skip ? '' : enterNamespace(import.meta.url);

const CONNECTIONS = 100;
/** More would leave an emulated machine no time for the program itself. */
const CONNECTIONS_AT_ONCE = 2;
/** Each check starts several programs. */
const everyMs = 50;
/** Clean-up starts dozens of programs when another mode has left rules, too. */
const CLEANED_UP_MS = paced(60_000);
/** How long the kernel keeps a TCP connection after a reset. */
const RESET_CONNECTION_MS = 10_000;
/** A short period for tests of the periodic check of rules and servers. */
const often = { ipvs: { syncPeriod: '2s' } };

const defaults: Setting = {};

const toClusterIP: Packet = { from: 'pod', to: 'clusterIP' };

describe('ipvs mode in operation', { skip }, () => {
  const book = addressBooks.IPv4;
  const [A, B] = [book.hosts.A, book.hosts.B].map((ip) => `${ip}:${podPort}`) as [string, string];
  let landscape: Landscape;
  let cluster: Cluster;
  let scene: Scene;
  let isRunningWith: Setting | undefined;

  before(async () => {
    landscape = await Landscape.build(namespace);
    cluster = await Cluster.open('ipvs', ['IPv4', 'IPv6'], landscape);
  });
  beforeEach(() => {
    scene = new Scene(cluster, book);
  });
  afterEach(() => scene.close());
  after(async () => {
    await cluster?.close();
    landscape?.close();
  });

  /** Starts the program with a setting unless it already runs with it: a start takes long in an emulated machine. */
  async function running(setting = defaults): Promise<void> {
    if (isRunningWith === setting) return;
    await stop();
    await cluster.start(setting);
    isRunningWith = setting;
  }

  async function stop(): Promise<void> {
    isRunningWith = undefined;
    await cluster.stop();
  }

  /** An address of a service of the scene, as `address:port`. */
  function place(to: Target = 'clusterIP', name = 'web'): string {
    const { n } = scene.service(name);
    return `${scene.address(to, n)}:${to === 'nodePort' ? nodePortOf(n) : 80}`;
  }

  /** Checks that a virtual server was not replaced: a new one counts from 0. The kernel updates counts every 2 s. */
  async function isTheOneThatHadMoreThan(connections: number): Promise<void> {
    const has = async () => (await connectionsSince(place())) > connections;
    await cluster.eventually(`more than ${connections} connections are counted`, has, { everyMs });
  }

  /** Repeats all commands until they succeed: one fails when the program removes the same object first or reads it. */
  async function runUntilDone(...commands: readonly (readonly [string, ...string[]])[]): Promise<void> {
    const areDone = async () => {
      try {
        for (const [command, ...args] of commands) await runInNode(command, ...args);
        return true;
      } catch (error) {
        assert.fail(messageOf(error));
      }
    };
    await cluster.eventually('every command succeeds', areDone, { everyMs });
  }

  async function cleanUp(): Promise<void> {
    const { code, stderr } = await run(kubeProxy, ['--config', cluster.writeConfig(), '--cleanup'], {
      timeout: CLEANED_UP_MS,
    });
    assert.equal(code, 0, stderr);
  }

  test('an endpoint that leaves under load keeps its connections and gets no new ones', async () => {
    await running();
    await scene.apply({ ...web, endpoints: ['A'] });
    const open = await Promise.all(everyWayIn.map((packet) => scene.open(packet)));
    await scene.apply(web);
    const load = new Load(scene, everyWayIn, CONNECTIONS_AT_ONCE);
    await load.during(async () => {
      await scene.apply({ ...web, endpoints: ['B'] });
      await scene.expect({ ...toClusterIP, expect: { B: 'OWN' } });
    }, CONNECTIONS);
    assert.deepEqual(load.failures, []);
    for (const to of ['clusterIP', 'nodePort', 'loadBalancer'] as const) {
      assert.deepEqual(await realServers(place(to)), { [A]: 0, [B]: 1 }, to);
    }
    const answers = await Promise.all(open.map((conversation) => conversation.ask()));
    assert.deepEqual(
      answers.map((answer) => answer?.by),
      ['A', 'A', 'A', 'A'],
    );
    await scene.apply(web);
    assert.deepEqual(
      await realServers(place()),
      { [A]: 1, [B]: 1 },
      'an endpoint that returns gets its weight back',
    );
    assert.equal((await open[0]?.ask())?.by, 'A');
    for (const conversation of open) await conversation.close();
  });

  test('a draining endpoint is removed when its last connection has ended, also after a restart', async () => {
    await running();
    const names = ['web', 'restarted'];
    for (const name of names) await scene.apply({ endpoints: ['A'] }, name);
    const open = await Promise.all(names.map((of) => scene.open({ ...toClusterIP, of })));
    for (const name of names) await scene.apply({ endpoints: ['B'] }, name);
    await cluster.restart();
    for (const name of names) {
      assert.deepEqual(await realServers(place('clusterIP', name)), { [A]: 0, [B]: 1 }, name);
    }
    assert.deepEqual(
      (await Promise.all(open.map((conversation) => conversation.ask()))).map((answer) => answer?.by),
      ['A', 'A'],
    );
    const pod = landscape.host('pod').namespace;
    await runInNode(
      'ip',
      'netns',
      'exec',
      pod,
      'ss',
      '-K',
      'dst',
      scene.address('clusterIP', scene.service().n),
    );
    const gone = async () => (await realServers(place()))?.[A] === undefined;
    const withinMs = pollIntervalMs + RESET_CONNECTION_MS + 10_000;
    await cluster.eventually('the end of A', gone, { withinMs, everyMs });
    assert.deepEqual(await realServers(place('clusterIP', 'restarted')), { [A]: 0, [B]: 1 });
    assert.equal((await open[1]?.ask())?.by, 'A');
    for (const conversation of open) await conversation.close();
  });

  test('killed and started again under load, it fails no connection, breaks none and rewrites nothing', async () => {
    await running();
    await scene.apply(web);
    const open = await Promise.all(everyWayIn.map((packet) => scene.open(packet)));
    const first = await Promise.all(open.map((conversation) => conversation.ask()));
    const load = new Load(scene, everyWayIn, CONNECTIONS_AT_ONCE);
    await load.during(() => cluster.restart(), CONNECTIONS);
    assert.deepEqual(load.failures, []);
    assert.deepEqual(await Promise.all(open.map((conversation) => conversation.ask())), first);
    await isTheOneThatHadMoreThan(CONNECTIONS / 4);
    await cluster.stop();
    const whole = await snapshot();
    await cluster.restart();
    await cluster.eventually('the same state', async () => (await snapshot()) === whole, { everyMs });
    for (const conversation of open) await conversation.close();
  });

  test('service addresses are on the device and in the sets, except those that the node has itself', async () => {
    await running();
    await scene.apply({ ...web, ranges: ['clients'] });
    const { n } = scene.service();
    const { clusterIP, external, loadBalancer } = book.service(n);
    const bound = async () => (await boundAddresses()).filter((ip) => ip.endsWith(`.${n}`));
    assert.deepEqual(await bound(), [clusterIP, loadBalancer, external].sort());
    for (const ip of [clusterIP, external, loadBalancer])
      assert.ok((await setEntries('KUBE-IPVS-IPS')).includes(ip));
    const entry = `${loadBalancer},tcp:80`;
    assert.ok((await setEntries('KUBE-CLUSTER-IP')).includes(`${clusterIP},tcp:80`));
    assert.deepEqual(await setEntries('KUBE-EXTERNAL-IP'), [`${external},tcp:80`]);
    assert.deepEqual(await setEntries('KUBE-LOAD-BALANCER'), [entry]);
    assert.deepEqual(await setEntries('KUBE-LOAD-BALANCER-FW'), [entry]);
    assert.deepEqual(await setEntries('KUBE-LOAD-BALANCER-SOURCE-CIDR'), [`${entry},${book.ranges.clients}`]);
    assert.deepEqual(await setEntries('KUBE-NODE-PORT-TCP'), [`${nodePortOf(n)}`]);
    assert.deepEqual(await setEntries('KUBE-LOOP-BACK'), [`${book.hosts.A},tcp:${podPort},${book.hosts.A}`]);
    await runInNode('ip', 'address', 'add', `${external}/32`, 'dev', 'lo');
    try {
      await scene.apply({ ...web, annotations: { changed: 'yes' } });
      assert.deepEqual(await bound(), [clusterIP, loadBalancer].sort(), 'the node has that address itself');
      assert.deepEqual(await realServers(place('external')), { [A]: 1, [B]: 1 });
    } finally {
      await runInNode('ip', 'address', 'del', `${external}/32`, 'dev', 'lo');
    }
    await scene.remove();
    await cluster.eventually('the end of the service', async () => (await bound()).length === 0, { everyMs });
    assert.equal(await realServers(place()), undefined);
    assert.deepEqual(await setEntries('KUBE-LOAD-BALANCER'), []);
  });

  test('a change of the scheduler is applied to virtual servers in place', async () => {
    await running();
    await scene.apply(web);
    assert.deepEqual(await schedulers(), ['rr']);
    const conversation = await scene.open(toClusterIP);
    const first = await conversation.ask();
    await running({ ipvs: { scheduler: 'lc' } });
    assert.deepEqual(await schedulers(), ['lc']);
    await isTheOneThatHadMoreThan(0);
    assert.deepEqual(await conversation.ask(), first);
    await scene.expect({ ...toClusterIP, expect: own });
    await conversation.close();
  });

  test('changes by other programs are undone by the next full sync', async () => {
    await running({ ipvs: { ...often.ipvs, excludeCIDRs: ['10.9.0.0/16'] } });
    await scene.apply(web);
    await runInNode('ipvsadm', '-A', '-t', '10.9.9.9:80', '-s', 'rr');
    await runInNode('ipvsadm', '-A', '-f', '7', '-s', 'rr');
    await sleep(paced(1_000));
    let whole = '';
    const hasSettled = async () => {
      const before = whole;
      whole = await snapshot();
      return before === whole;
    };
    await cluster.eventually('a state that stays', hasSettled, { everyMs });
    const changes: readonly (readonly [string, ...string[]])[] = [
      ['ipvsadm', '-D', '-t', place('external')],
      ['ipvsadm', '-d', '-t', place(), '-r', A],
      ['ipvsadm', '-A', '-t', '10.8.8.8:80', '-s', 'rr'],
      ['ip', 'address', 'add', '10.8.8.8/32', 'dev', 'kube-ipvs0'],
      ['ipset', 'del', 'KUBE-CLUSTER-IP', `${scene.address('clusterIP', scene.service().n)},tcp:80`],
      ['ipset', 'add', 'KUBE-NODE-PORT-TCP', '1'],
      ['iptables', '-w', '5', '-t', 'nat', '-F', 'KUBE-SERVICES'],
      ['ip6tables', '-w', '5', '-t', 'filter', '-F', 'INPUT'],
      ['ip', 'link', 'del', 'kube-ipvs0'],
    ];
    for (const [command, ...args] of changes) await runInNode(command, ...args);
    await cluster.eventually('what was there before', async () => (await snapshot()) === whole, { everyMs });
    assert.match(whole, /-A -f 7 /, 'virtual servers for firewall marks stay');
    assert.match(whole, /10\.9\.9\.9:80/, 'excluded virtual servers stay');
    await scene.expect(
      { ...toClusterIP, expect: own },
      { from: 'client', to: 'nodePort', expect: masqueraded },
    );
  });

  test('a failed sync is reported and retried until it succeeds', async () => {
    await running(often);
    await scene.apply({ endpoints: ['A'] });
    const set = 'KUBE-LOAD-BALANCER-SOURCE-IP';
    await runUntilDone(['ipset', 'destroy', set], ['ipset', 'create', set, 'hash:ip']);
    await cluster.program.logs(new RegExp(`^E.*${set}`, 'm'));
    scene.put({ endpoints: ['B'] });
    await scene.expect({ ...toClusterIP, expect: { A: 'OWN' } });
    await runUntilDone(['ipset', 'destroy', set]);
    await scene.eventually({ ...toClusterIP, expect: { B: 'OWN' } });
  });

  test('clean-up removes everything of ipvs mode and nothing of others, also when it is repeated', async () => {
    await runInNode('iptables', '-t', 'nat', '-N', 'OTHER');
    await runInNode('iptables', '-t', 'nat', '-I', 'PREROUTING', '-j', 'OTHER');
    await runInNode('ipset', 'create', 'OTHER', 'hash:ip');
    await running();
    await scene.apply({ ...web, ranges: ['clients'] });
    await stop();
    for (let i = 0; i < 2; i++) {
      await cleanUp();
      assert.equal(await runInNode('ipvsadm', '-Sn'), '');
      assert.equal(await runInNode('ipset', 'list', '-n'), 'OTHER\n');
      assert.doesNotMatch(await runInNode('ip', 'link'), /kube-ipvs0/);
      const rules = `${await runInNode('iptables-save')}${await runInNode('ip6tables-save')}`;
      assert.doesNotMatch(rules, /KUBE-/);
      assert.match(rules, /-A PREROUTING -j OTHER/);
      await scene.expect(
        { ...toClusterIP, expect: IGNORE },
        { from: 'client', to: 'external', expect: IGNORE },
        { from: 'client', to: 'nodePort', expect: 'RESET' },
      );
    }
  });

  test('from iptables mode and back, clean-up removes what both have left', async () => {
    const other = await Cluster.open('iptables', ['IPv4', 'IPv6'], landscape);
    try {
      await other.start();
      await other.stop();
      await running();
      await scene.apply(web);
      await scene.expect({ ...toClusterIP, expect: own });
      await stop();
      await cleanUp();
      const rules = `${await runInNode('iptables-save')}${await runInNode('ip6tables-save')}`;
      assert.doesNotMatch(rules, /KUBE-(?!FIREWALL|KUBELET)/);
    } finally {
      await other.close();
    }
  });
});
