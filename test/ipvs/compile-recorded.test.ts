import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Family, families } from '../../src/model/ip.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { FakeClock } from '../fake-clock.ts';
import { plansOf } from '../plan/recorded-cluster.ts';
import { FakeKernel } from './fake-kernel.ts';
import { ipvsEngine } from './harness.ts';
import {
  interfaceAddresses,
  type RecordedIpvsCluster,
  recordedIpvsClusters,
  savedServers,
  savedSets,
  settingsOf,
} from './recorded-cluster.ts';
import { recordedRules, savedRules } from './saved-rules.ts';

const clusters = recordedIpvsClusters();

const strictInternalPolicy =
  'internalTrafficPolicy Local without an endpoint here: upstream sends cluster IP traffic elsewhere when the ' +
  'service has an external address too';

/**
 * Intended differences from the recordings: lines that only upstream has, and lines that only we have. Every other
 * difference fails.
 */
const differences: Readonly<Record<string, { reason: string; theirs: string[]; ours: string[] }>> = {
  'cluster-005.json': {
    reason: strictInternalPolicy,
    theirs: [
      '-a -u 10.96.2.12:80 -r 10.244.1.180:8080 -m -w 1',
      '-a -u 10.96.2.12:80 -r 10.244.2.175:8080 -m -w 1',
    ],
    ours: [],
  },
  'cluster-007.json': {
    reason: strictInternalPolicy,
    theirs: [
      '-a -t 10.96.0.10:80 -r 10.244.2.151:8080 -m -w 1',
      '-a -t 10.96.0.10:81 -r 10.244.2.151:8081 -m -w 1',
      '-a -t 10.96.0.10:82 -r 10.244.2.151:8082 -m -w 1',
    ],
    ours: [],
  },
};

async function program(cluster: RecordedIpvsCluster): Promise<FakeKernel> {
  const fake = new FakeKernel();
  fake.onNode = interfaceAddresses;
  for (const family of families) {
    const backend = ipvsEngine(
      {
        settings: settingsOf(cluster, family),
        kernel: fake.kernel,
        metrics: { iptablesRestoreFailures: { inc: () => assert.fail('rules were refused') } },
        logger: silentLogger,
        clock: new FakeClock(),
      },
      () => assert.fail('something failed'),
    );
    const plans = new Map((await plansOf(cluster, family)).map((plan) => [plan.port.key, plan]));
    const { refused } = await backend.sync({ plans, changed: 'all', serviceCIDRs: [], totalEndpoints: 0 });
    assert.deepEqual(refused, []);
    assertRules(cluster, family, fake);
    await backend.close();
  }
  return fake;
}

function assertRules({ expect }: RecordedIpvsCluster, family: Family, fake: FakeKernel): void {
  const digit = family === 'IPv4' ? 4 : 6;
  for (const table of ['nat', 'filter'] as const) {
    const ours = savedRules(family, table, fake.rules, fake.jumps);
    assert.deepEqual(ours, recordedRules(expect[`${table}${digit}`]), `${table}${digit}`);
  }
}

test('the folder holds every recorded cluster, and every intended difference names one of them', () => {
  assert.equal(clusters.length, 8);
  const names = clusters.map(({ name }) => name);
  assert.deepEqual(
    Object.keys(differences).filter((name) => !names.includes(name)),
    [],
  );
});

for (const { name, cluster } of clusters) {
  test(`${name}: the kernel holds what upstream wrote`, async () => {
    const fake = await program(cluster);
    const ours = [...savedServers(fake), ...savedSets(fake)];
    const theirs = [...cluster.expect.ipvs, ...cluster.expect.ipset];
    const { theirs: lost = [], ours: added = [], reason } = differences[name] ?? {};
    assert.deepEqual(
      ours.filter((line) => !theirs.includes(line)),
      added,
      reason,
    );
    assert.deepEqual(
      theirs.filter((line) => !ours.includes(line)),
      lost,
      reason,
    );
    const addresses = [...(fake.bound ?? [])].map((ip) => `${ip}/${ip.includes(':') ? 128 : 32}`);
    assert.deepEqual(addresses.sort(), cluster.expect.addresses.toSorted());
  });
}
