/** Endpoints that the kernel's scheduler `mh` chooses, where a Service asks for a hash. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { families, joinHostPort } from '../../src/model/ip.ts';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { nextSourcePort } from '../cluster/lab/source-port.ts';
import { addressBooks } from '../contract/address-book.ts';
import { Cluster } from '../contract/cluster.ts';
import { Landscape } from '../contract/landscape.ts';
import { runInNode } from '../contract/node-commands.ts';
import { podPort } from '../contract/objects.ts';
import { Scene } from '../contract/scene.ts';
import type { Packet, ServiceSpec } from '../contract/story.ts';
import { ipvsUnavailable } from './on-ipvs-kernel.ts';

const skip = labUnavailable() ?? (await ipvsUnavailable()) ?? false;
const namespace = skip ? '' : enterNamespace(import.meta.url);

/** With this many, chance alone gives all of a client's connections to one of four endpoints once in 10^11 runs. */
const connections = 20;
type EndpointPod = 'A' | 'B' | 'C' | 'D';
const all: readonly EndpointPod[] = ['A', 'B', 'C', 'D'];
const toClusterIP: Packet = { from: 'pod', to: 'clusterIP' };

function hashed(balance: 'hash' | 'hash-client', endpoints: ServiceSpec['endpoints'] = all): ServiceSpec {
  return { annotations: { 'kube-proxy-ts.dev/balance': balance }, endpoints };
}

function mostFrequent(names: readonly string[]): string {
  const groups = [...Map.groupBy(names, (name) => name)];
  const [first] = groups.toSorted(([, a], [, b]) => b.length - a.length);
  return first?.[0] ?? '';
}

describe('hashing in ipvs mode', { skip }, () => {
  let landscape: Landscape;
  let cluster: Cluster;
  let scene: Scene;

  before(async () => {
    landscape = await Landscape.build(namespace);
    cluster = await Cluster.open('ipvs', families, landscape);
    await cluster.start();
  });
  afterEach(() => scene.close());
  after(async () => {
    await cluster?.close();
    landscape?.close();
  });

  /**
   * Who answers a client's connections from these ports, in their order. A port may be used once for each service: IPVS
   * remembers closed connections, and sends new ones with the same addresses and ports after them.
   */
  async function answerers(ports: readonly number[], of: string): Promise<string[]> {
    const names: string[] = [];
    for (const sourcePort of ports) names.push(await scene.answerer({ ...toClusterIP, sourcePort, of }));
    return names;
  }

  function clusterPlace(of = 'web'): string {
    return joinHostPort(scene.address('clusterIP', scene.service(of).n), 80);
  }

  /** The scheduler of the cluster IP and its flags, as ipvsadm shows them. */
  async function scheduling(of = 'web'): Promise<string | undefined> {
    const lines = (await runInNode('ipvsadm', '-Sn')).split('\n');
    return lines.find((line) => line.startsWith(`-A -t ${clusterPlace(of)} `))?.split(' -s ')[1];
  }

  for (const family of families) {
    const book = addressBooks[family];
    const ports = Array.from({ length: connections }, nextSourcePort);

    test(`${family}: a client's port decides with hash, and its address alone with hash-client`, async () => {
      scene = new Scene(cluster, book);
      await scene.apply(hashed('hash'), 'web');
      await scene.apply(hashed('hash'), 'twin');
      await scene.apply(hashed('hash-client'), 'by-address');
      assert.match((await scheduling('web')) ?? '', /^mh -b mh-fallback,mh-port/);
      assert.match((await scheduling('by-address')) ?? '', /^mh -b mh-fallback *$/);
      const first = await answerers(ports, 'web');
      assert.ok(new Set(first).size > 1, 'connections of one client go to several endpoints');
      assert.deepEqual(await answerers(ports, 'twin'), first, 'the same endpoints are chosen alike');
      assert.equal(new Set(await answerers(ports, 'by-address')).size, 1);
    });

    test(`${family}: an endpoint that drains moves its own clients only, and they are not refused`, async () => {
      scene = new Scene(cluster, book);
      await scene.apply(hashed('hash'), 'twin');
      await scene.apply(hashed('hash'), 'web');
      const answers = await answerers(ports, 'twin');
      const leaving = mostFrequent(answers);
      // By the number of connections, these are at least five.
      const [chosen = 0, unlucky = 0, ...moving] = ports.filter((_, i) => answers[i] === leaving);
      const staying = ports.filter((_, i) => answers[i] !== leaving);
      const open = await scene.open({ ...toClusterIP, sourcePort: chosen });
      assert.equal((await open.ask())?.by, leaving);
      const remaining = all.filter((name) => name !== leaving);
      await scene.apply(hashed('hash', remaining), 'web');
      const drains = `-r ${joinHostPort(book.hosts[leaving as EndpointPod], podPort)} -m -w 0`;
      assert.ok((await runInNode('ipvsadm', '-Sn')).includes(drains), 'it has weight 0 while it drains');
      const moved = await answerers(moving, 'web');
      assert.ok(!moved.includes(leaving), 'other endpoints serve its clients');
      const stayed = await answerers(staying, 'web');
      const before = answers.filter((name) => name !== leaving);
      assert.deepEqual(stayed, before, 'clients of other endpoints stay where they are');
      assert.equal((await open.ask())?.by, leaving, 'its open connection goes on');
      // The flag mh-fallback does that: the kernel refuses such a client without it.
      await runInNode('ipvsadm', '-E', '-t', clusterPlace(), '-s', 'mh', '-b', 'mh-port');
      const refused = await scene.outcome({ ...toClusterIP, sourcePort: unlucky });
      assert.deepEqual(refused, { kind: 'rejected' });
      await open.close();
    });
  }

  test('a change of the annotation keeps the virtual server and its connections', async () => {
    scene = new Scene(cluster, addressBooks.IPv4);
    await scene.apply({ endpoints: all });
    assert.match((await scheduling()) ?? '', /^rr/);
    const open = await scene.open(toClusterIP);
    const first = await open.ask();
    assert.ok(first, 'the connection is answered');
    await scene.apply(hashed('hash'));
    assert.match((await scheduling()) ?? '', /^mh/);
    assert.equal((await open.ask())?.by, first?.by);
    await scene.apply({ endpoints: all });
    assert.match((await scheduling()) ?? '', /^rr/);
    assert.equal((await open.ask())?.by, first?.by);
    await open.close();
  });
});
