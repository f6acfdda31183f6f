import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Difference } from '../../src/backends/inspection.ts';
import { compare } from '../../src/backends/iptables/compare.ts';
import { nodeLines } from '../../src/backends/iptables/node-lines.ts';
import { type Family, families } from '../../src/model/ip.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { plansByKey } from '../cluster/plans.ts';
import { FakeClock } from '../fake-clock.ts';
import { plansOf, recordedClusters } from '../plan/recorded-cluster.ts';
import { type RecordedIptablesCluster, recordedAddresses, recordedSettings } from './compiled-cluster.ts';
import { recordedTables } from './recorded-tables.ts';

const counters = { invalidDropped: true, localhostAccepted: true };

for (const { name, cluster } of recordedClusters()) {
  for (const family of families) {
    const recorded = cluster as RecordedIptablesCluster;
    test(`${name} ${family}: nothing differs but the order of services`, async () => {
      const kinds = (await differences(recorded, family)).map(({ kind }) => kind);
      assert.deepEqual(
        [...new Set(kinds)].filter((kind) => kind !== 'rule order'),
        [],
      );
    });

    test(`${name} ${family}: a comparison names every missing line`, async () => {
      for (const [table, line] of linesOf(recorded, family)) {
        const found = await differences(recorded, family, (name, other) => name === table && other === line);
        assert.ok(
          found.some((difference) => isAbout(difference, table, line)),
          `${table} ${line} is missed`,
        );
      }
    });
  }
}

async function differences(
  cluster: RecordedIptablesCluster,
  family: Family,
  leaveOut?: (table: string, line: string) => boolean,
): Promise<readonly Difference[]> {
  const settings = recordedSettings(cluster, family);
  const node = nodeLines(settings, counters, recordedAddresses(cluster), silentLogger);
  const tables = recordedTables(cluster, family, leaveOut);
  const plans = plansByKey(...(await plansOf(cluster, family)));
  return compare({ plans }, { settings, tables, node, counters, clock: new FakeClock() });
}

/** Some lines of every table, not all: each takes a comparison of everything. */
function linesOf(cluster: RecordedIptablesCluster, family: Family): (readonly [string, string])[] {
  const digit = family === 'IPv4' ? '4' : '6';
  return (['nat', 'filter'] as const).flatMap((table) => {
    const lines = cluster.expect[`${table}${digit}`].filter((line) => line.startsWith('-A '));
    const step = Math.max(1, Math.floor(lines.length / 5));
    return lines.filter((_, i) => i % step === 0).map((line) => [table, line] as const);
  });
}

/** Whether a difference names the chain of the line and the target of its rule. */
function isAbout({ kind, object, wanted, found }: Difference, table: string, line: string): boolean {
  const chain = line.split(' ')[1];
  const target = / -j (\S+)/.exec(line)?.[1];
  const hasTarget = target === undefined || wanted?.includes(`-j ${target}`) === true;
  return ['rule', 'jump'].includes(kind) && object === `${table} ${chain}` && hasTarget && !found;
}
