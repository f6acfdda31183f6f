import assert from 'node:assert/strict';
import { test } from 'node:test';
import { families } from '../../src/model/ip.ts';
import { plansOf, recordedClusters, recordedStatements, statementsOf } from './recorded-cluster.ts';

const clusters = recordedClusters();

test('the folder holds every recorded cluster', () => {
  assert.equal(clusters.length, 40);
});

for (const { name, cluster } of clusters) {
  for (const family of families) {
    test(`${name} ${family}: plans say what upstream programmed`, async () => {
      const plans = await plansOf(cluster, family);
      // When a range contains the node, upstream also admits the VIPs as sources; backends add that, not plans.
      const vips = new Set(plans.flatMap(({ port }) => port.loadBalancerVIPs));
      const isVIPSource = (said: string) => vips.has(/accepts ([^/]+)\//.exec(said)?.[1] ?? '');
      const recorded = recordedStatements(cluster, family).filter((said) => !isVIPSource(said));
      const planned = [...new Set(plans.flatMap(statementsOf))];
      assert.deepEqual(planned.sort(), recorded.sort());
    });
  }
}
