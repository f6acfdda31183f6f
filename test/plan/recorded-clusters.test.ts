import assert from 'node:assert/strict';
import { test } from 'node:test';
import { families } from '../../src/model/ip.ts';
import { plansOf, recordedClusters, recordedStatements, statementsOf } from './recorded-cluster.ts';

const clusters = recordedClusters();

test('every recorded cluster is there', () => {
  assert.equal(clusters.length, 40);
});

for (const { name, cluster } of clusters) {
  for (const family of families) {
    test(`${name} ${family}: plans say what upstream programmed`, async () => {
      const plans = await plansOf(cluster, family);
      // Upstream also lets a VIP through as a source, when a range contains the node; that is the backend's affair.
      const vips = new Set(plans.flatMap(({ port }) => port.loadBalancerVIPs));
      const isVIPSource = (said: string) => vips.has(/accepts ([^/]+)\//.exec(said)?.[1] ?? '');
      const recorded = recordedStatements(cluster, family).filter((said) => !isVIPSource(said));
      const planned = [...new Set(plans.flatMap(statementsOf))];
      assert.deepEqual(planned.sort(), recorded.sort());
    });
  }
}
