import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Family, families } from '../../src/model/ip.ts';
import { plansOf, recordedClusters } from '../plan/recorded-cluster.ts';
import { type RecordedIptablesCluster, recordedAddresses, recordedSettings } from './compiled-cluster.ts';
import { FakeTables } from './fake-tables.ts';
import { SyncHarness } from './harness.ts';
import { type Chains, chainsOf, comparable, savedForm } from './normalise.ts';

/** Excludes the chain that the canary makes, not the sync. */
const isOwn = (chain: string) => chain.startsWith('KUBE-') && chain !== 'KUBE-PROXY-CANARY';

for (const { name, cluster } of recordedClusters()) {
  for (const family of families) {
    test(`${name} ${family}: writes the rules that upstream wrote`, async () => {
      const tables = await programmed(cluster as RecordedIptablesCluster, family);
      const digit = family === 'IPv4' ? '4' : '6';
      assertHandOverLast(tables.tables.nat.get('KUBE-SERVICES') ?? []);
      for (const table of ['nat', 'filter'] as const) {
        const recorded = only(chainsOf(cluster.expect[`${table}${digit}`]));
        const written = only(tables.tables[table], family);
        assert.deepEqual(comparable(written), comparable(recorded), table);
      }
    });
  }
}

async function programmed(cluster: RecordedIptablesCluster, family: Family): Promise<FakeTables> {
  const harness = new SyncHarness(new FakeTables(), recordedSettings(cluster, family));
  harness.interfaceAddresses = async () => recordedAddresses(cluster);
  assert.deepEqual(await harness.full(...(await plansOf(cluster, family))), []);
  return harness.tables;
}

/** Checks the order of this rule; the comparison cannot, because it sorts the rules of this chain. */
function assertHandOverLast(rules: readonly string[]): void {
  const first = rules.findIndex((rule) => rule.endsWith('-j KUBE-NODEPORTS'));
  if (first >= 0) assert.ok(rules.slice(first).every((rule) => rule.endsWith('-j KUBE-NODEPORTS')));
}

/** Our chains; with a family, their rules as iptables-save would print them. */
function only(chains: Chains, family?: Family): Map<string, string[]> {
  return new Map(
    [...chains]
      .filter(([chain]) => isOwn(chain))
      .map(([chain, rules]) => [chain, rules.map((rule) => (family ? savedForm(rule, family) : rule))]),
  );
}
