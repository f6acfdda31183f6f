import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { families } from '../../src/model/ip.ts';
import { enterNamespace, labUnavailable, sh } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { addressBooks } from '../contract/address-book.ts';
import { Cluster } from '../contract/cluster.ts';
import { Landscape } from '../contract/landscape.ts';
import { podPort } from '../contract/objects.ts';
import { Scene } from '../contract/scene.ts';
import { eventuallyEqual } from '../eventually.ts';
import type { Sending } from './ledger.ts';
import { services } from './services.ts';
import { Views } from './views.ts';

const answered: readonly Sending[] = [
  { from: 'pod', to: 'clusterIP', of: 'web', times: 3 },
  { from: 'node', to: 'clusterIP', of: 'web', times: 2 },
  { from: 'client', to: 'nodePort', of: 'web', transport: 'udp', times: 4 },
];
const failing: readonly Sending[] = [
  { from: 'pod', to: 'clusterIP', of: 'closed', times: 3 },
  { from: 'node', to: 'clusterIP', of: 'closed', times: 2 },
  { from: 'pod', to: 'clusterIP', of: 'lonely', times: 2 },
  { from: 'node', to: 'clusterIP', of: 'lonely', times: 1 },
];

if (labUnavailable() === undefined) {
  const own = enterNamespace(import.meta.url);
  describe('metrics of connections without bytes', () => {
    let landscape: Landscape;
    let cluster: Cluster;
    before(async () => {
      landscape = await Landscape.build(own);
      cluster = await Cluster.open('nftables', families, landscape);
      await cluster.start({ flags: ['--service-metrics=connections'] });
    });
    after(async () => {
      await cluster.close();
      landscape.close();
    });
    for (const family of families) {
      test(`connections and failures over ${family} are exact, and no other packets are counted`, {
        timeout: paced(120_000),
      }, async () => {
        const scene = new Scene(cluster, addressBooks[family]);
        for (const name of ['web', 'closed', 'lonely']) scene.put(services[name] ?? assert.fail(), name);
        await cluster.settled();
        await checkMetrics(scene, landscape);
        await scene.close();
      });
    }
  });
} else test('metrics of connections without bytes', { skip: labUnavailable() }, () => {});

async function checkMetrics(scene: Scene, landscape: Landscape): Promise<void> {
  const views = new Views(scene, ['web', 'closed', 'lonely']);
  for (const packet of times(answered)) assert.equal((await scene.outcome(packet)).kind, 'answered');
  const host = landscape.host('C');
  await host.stop(podPort, 'tcp');
  try {
    for (const packet of times(failing)) assert.notEqual((await scene.outcome(packet)).kind, 'answered');
  } finally {
    await host.serve(podPort, 'tcp');
  }
  const connections = () => views.metric('connections_total');
  const opened = new Map([
    ['web/tcp', 5],
    ['web/udp', 4],
    ['closed/tcp', 5],
  ]);
  await eventuallyEqual('Prometheus reads the connections', connections, opened);
  const failed = () => views.metric('failed_connections_total', 'reason');
  const failures = new Map([
    ['closed/tcp reset', 5],
    ['lonely/tcp rejected', 3],
  ]);
  await eventuallyEqual('Prometheus reads the failures', failed, failures);
  assert.deepEqual(await views.metric('bytes_total', 'direction'), new Map());
  const counted = sh('nft list ruleset').match(/\. (\S+) \. (original|reply) counter/g) ?? [];
  assert.deepEqual(
    new Set(counted),
    new Set(['. 0x00000000 . original counter', '. 0x00000208 . reply counter']),
  );
}

function times(sendings: readonly Sending[]): Omit<Sending, 'times'>[] {
  return sendings.flatMap(({ times, ...packet }) => Array.from({ length: times }, () => packet));
}
