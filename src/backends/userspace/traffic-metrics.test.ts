import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noTraffic } from '../../forwarder/traffic.ts';
import { systemClock } from '../../lib/clock.ts';
import { createProxyMetrics } from '../../obs/proxy-metrics.ts';
import { Registry } from '../../obs/registry.ts';
import { formatText } from '../../obs/text-exposition.ts';
import { showTraffic } from './traffic-metrics.ts';

test('traffic is shown per service and endpoint', async () => {
  const traffic = { connections: 3, open: 1, bytesIn: 10, bytesOut: 2_000, dialFailures: 2, dialling: 0 };
  const endpoints = new Map([['10.244.1.21:8080', traffic]]);
  const report = new Map([['default/web:http/TCP IPv4', { ...noTraffic(), unserved: 0, endpoints }]]);
  const registry = new Registry({
    clock: systemClock,
    onCollectError: (error) => assert.fail(String(error)),
  });
  const metrics = createProxyMetrics(registry, ['proxied traffic']);
  showTraffic({ traffic: async () => report }, metrics);
  const page = formatText(await registry.gather());
  const labels = 'service="default/web:http/TCP IPv4"';
  const lines = page.split('\n').filter((line) => line.includes(labels));
  assert.deepEqual(
    lines.map(
      (line) =>
        `${line.slice(0, line.indexOf('{'))} ${line.includes('"in"') ? 'in ' : ''}${line.split(' ').at(-1)}`,
    ),
    [
      'kubeproxy_ts_userspace_bytes_total in 10',
      'kubeproxy_ts_userspace_bytes_total 2000',
      'kubeproxy_ts_userspace_connections_total 3',
      'kubeproxy_ts_userspace_dial_failures_total 2',
      'kubeproxy_ts_userspace_open_connections 1',
    ],
  );
});
