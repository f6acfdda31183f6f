import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { loadMode } from '../app/modes.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';
import { registerBuildMetrics } from './build-metrics.ts';
import { registerProcessMetrics } from './process-metrics.ts';
import { createProxyMetrics } from './proxy-metrics.ts';
import { Registry } from './registry.ts';
import { createRestClientMetrics } from './rest-client-metrics.ts';
import { registerRuntimeMetrics } from './runtime-metrics.ts';
import { formatText } from './text-exposition.ts';

interface Recorded {
  type: string;
  labels: string[];
  le?: string[];
}

/** Upstream metrics that we omit on purpose. */
const leftOut: readonly { pattern: RegExp; reason: string }[] = [
  { pattern: /^go_/, reason: 'describes the Go runtime; ours is described by nodejs_*' },
  { pattern: /^apiserver_/, reason: 'API server library linked into upstream; always zero in a proxy' },
  { pattern: /^aggregator_/, reason: 'API server library linked into upstream; always zero in a proxy' },
  { pattern: /^cardinality_enforcement_/, reason: 'counts faults of a Go-only allow-list option' },
];

const build = {
  major: '1',
  minor: '37',
  gitVersion: 'v1.37.0',
  gitCommit: 'abc',
  gitTreeState: 'clean',
  buildDate: '2026-01-01T00:00:00Z',
  goVersion: 'v24.21.0',
  compiler: 'v8',
  platform: 'linux/amd64',
  productVersion: '0.9.0',
};

async function groupsOf(mode: ProxyMode, localhostNodePorts = false) {
  return (await loadMode(mode)).metricGroups(() => localhostNodePorts);
}

async function fullRegistry(mode: ProxyMode) {
  const registry = new Registry({
    clock: new FakeClock(),
    onCollectError: (error) => assert.fail(String(error)),
  });
  const proxy = createProxyMetrics(registry, await groupsOf(mode));
  const rest = createRestClientMetrics(registry);
  registerProcessMetrics(registry);
  registerRuntimeMetrics(registry);
  registerBuildMetrics(registry, build, [{ name: 'NFTablesNetlink', stage: 'BETA', enabled: true }]);
  return { registry, proxy, rest };
}

/** Uses every metric once, as a running proxy does. */
function useAll({ proxy, rest }: Awaited<ReturnType<typeof fullRegistry>>): void {
  const family = { ip_family: 'IPv4' };
  const { syncDuration, fullSyncDuration, partialSyncDuration, conntrackSyncDuration } = proxy;
  for (const h of [syncDuration, fullSyncDuration, partialSyncDuration, conntrackSyncDuration]) {
    h.observe(0.1, family);
  }
  proxy.networkProgrammingDuration.observe(1, family);
  for (const gauge of [proxy.lastQueued, proxy.lastSync, proxy.localhostNodePortListeners]) {
    gauge.set(1, family);
  }
  for (const traffic_policy of ['internal', 'external'])
    proxy.noLocalEndpoints.set(0, { ...family, traffic_policy });
  proxy.healthzTotal.inc({ code: '200' });
  for (const gauge of [proxy.iptablesRulesTotal, proxy.iptablesRulesLast])
    gauge.set(1, { ...family, table: 'nat' });
  proxy.conntrackDeleted.inc(family);
  proxy.ctStateInvalidDropped.readFrom(() => [{ labels: {}, value: 1 }]);
  proxy.localhostNodePortsAccepted.readFrom(() => [{ labels: {}, value: 1 }]);
  const call = { verb: 'GET', host: '10.0.0.1:6443' };
  for (const h of [rest.requestDuration, rest.rateLimiterDuration, rest.requestSize, rest.responseSize]) {
    h.observe(1, call);
  }
  rest.requests.inc({ code: '200', method: 'GET', host: '10.0.0.1:6443' });
  rest.transportCreateCalls.inc({ result: 'miss' });
}

/** Name → type, sorted label names and `le` values of a text page. */
function parse(page: string): Map<string, Recorded> {
  const metrics = new Map<string, Recorded>();
  let current: Recorded = { type: '', labels: [] };
  for (const line of page.split('\n')) {
    const type = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (type) {
      current = { type: type[2] ?? '', labels: [] };
      metrics.set(type[1] ?? '', current);
    } else if (line !== '' && !line.startsWith('#')) {
      addLabels(current, line);
    }
  }
  return metrics;
}

function addLabels(metric: Recorded, line: string): void {
  for (const [, name = '', value = ''] of line.matchAll(/([a-z_]+)="([^"]*)"/g)) {
    if (name === 'le') metric.le = [...new Set([...(metric.le ?? []), value])];
    else if (!metric.labels.includes(name)) metric.labels.push(name);
  }
  metric.labels.sort();
}

for (const mode of ['iptables', 'nftables'] as const) {
  const vectors = new URL(`../../test/vectors/pages/${mode}.json`, import.meta.url);
  const recorded: { metrics: Record<string, Recorded> } = JSON.parse(readFileSync(vectors, 'utf8'));

  test(`${mode}: metrics have the type, labels and buckets of the recorded ones`, async () => {
    const registry = await fullRegistry(mode);
    useAll(registry);
    const ours = parse(formatText(await registry.registry.gather()));
    let compared = 0;
    for (const [name, upstream] of Object.entries(recorded.metrics)) {
      if (leftOut.some(({ pattern }) => pattern.test(name))) {
        assert.ok(!ours.has(name), `${name} is listed as left out`);
        continue;
      }
      assert.deepEqual(ours.get(name), upstream, name);
      compared++;
    }
    assert.ok(compared >= 38, `${compared} metrics compared`);
  });

  test(`${mode}: every metric without our prefix exists upstream`, async () => {
    const registry = await fullRegistry(mode);
    useAll(registry);
    const own = /^(kubeproxy_ts_|nodejs_)/;
    for (const { name } of await registry.registry.gather()) {
      assert.ok(own.test(name) || name in recorded.metrics, name);
    }
  });
}

/** Names a mode declares, whether used yet or not: a second declaration of one throws. */
async function declared(mode: ProxyMode, localhostNodePorts = false): Promise<Set<string>> {
  const names = new Set<string>();
  class Recorder extends Registry {
    override register(collector: Parameters<Registry['register']>[0]): void {
      for (const { name } of collector.families) names.add(name.replace(/^kubeproxy_/, ''));
      super.register(collector);
    }
  }
  const registry = new Recorder({ clock: new FakeClock(), onCollectError: () => {} });
  createProxyMetrics(registry, await groupsOf(mode, localhostNodePorts));
  return names;
}

test('each mode exposes its own metrics only', async () => {
  const gated = [
    'nftables_localhost_nodeport_listeners',
    'nftables_localhost_nodeport_listener_creation_failures_total',
    'nftables_localhost_nodeport_rejected_packets_total',
  ];
  const only: [string, ProxyMode[]][] = [
    ['sync_full_proxy_rules_duration_seconds', ['iptables', 'nftables']],
    ['sync_partial_proxy_rules_duration_seconds', ['iptables', 'nftables']],
    ['sync_proxy_rules_iptables_restore_failures_total', ['iptables', 'ipvs']],
    ['sync_proxy_rules_iptables_partial_restore_failures_total', ['iptables']],
    ['sync_proxy_rules_iptables_total', ['iptables']],
    ['sync_proxy_rules_iptables_last', ['iptables']],
    ['iptables_ct_state_invalid_dropped_packets_total', ['iptables']],
    ['iptables_localhost_nodeports_accepted_packets_total', ['iptables']],
    ['sync_proxy_rules_nftables_sync_failures_total', ['nftables']],
    ['sync_proxy_rules_nftables_cleanup_failures_total', ['nftables']],
    ['conntrack_reconciler_sync_duration_seconds', ['iptables', 'ipvs', 'nftables', 'userspace']],
    ['conntrack_reconciler_deleted_entries_total', ['iptables', 'ipvs', 'nftables', 'userspace']],
    ['sync_proxy_rules_duration_seconds', ['iptables', 'ipvs', 'nftables', 'userspace']],
    ['ts_repairs_total', ['iptables', 'nftables', 'userspace']],
    ['ts_changed_objects_total', ['iptables', 'nftables', 'userspace']],
    ['ts_rules_wrong_seconds_total', ['iptables', 'nftables', 'userspace']],
    ['proxy_livez_total', ['iptables', 'ipvs', 'nftables', 'userspace']],
  ];
  for (const mode of ['iptables', 'ipvs', 'nftables', 'userspace'] as const) {
    const names = await declared(mode);
    for (const [name, modes] of only)
      assert.equal(names.has(name), modes.includes(mode), `${name} in ${mode}`);
    for (const name of gated) {
      assert.equal(names.has(name), false);
      assert.equal((await declared(mode, true)).has(name), mode === 'nftables', `${name} in ${mode}`);
    }
  }
});

test('a metric of another mode accepts values and is not exposed', async () => {
  const { registry, proxy } = await fullRegistry('userspace');
  proxy.iptablesRulesTotal.set(1, { table: 'nat', ip_family: 'IPv4' });
  assert.doesNotMatch(formatText(await registry.gather()), /iptables/);
});

test('the help of every kubeproxy metric says ALPHA', async () => {
  const { registry } = await fullRegistry('iptables');
  for (const { name, help } of await registry.gather()) {
    if (name.startsWith('kubeproxy_')) assert.match(help, /^\[ALPHA\] /, name);
  }
});
