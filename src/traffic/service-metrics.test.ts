import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../test/cluster/plans.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import type { MeteredPort } from '../inspect/traffic.ts';
import { Registry } from '../obs/registry.ts';
import { formatText } from '../obs/text-exposition.ts';
import { registerServiceMetrics } from './service-metrics.ts';

const plans = ['a', 'b', 'c'].map((name, i) =>
  planOf({ name, portName: 'http', clusterIP: `10.96.0.${i + 1}` }),
);

function portsOf(names: readonly string[], factor: number): MeteredPort[] {
  return plans
    .filter(({ port }) => names.includes(port.name))
    .flatMap(({ port }, i) =>
      (['IPv4', 'IPv6'] as const).map((family) => ({
        port: { ...port, family },
        figures: {
          opened: 10 * factor * (i + 1),
          ended: 0,
          open: i,
          packetsToEndpoint: 1,
          packetsToClient: 1,
          bytesToEndpoint: 100,
          bytesToClient: null,
          failed: { rejected: i, dropped: 0, filtered: 0, reset: 0, unanswered: 0 },
        },
      })),
    );
}

function scrape(kinds: readonly string[], max: number) {
  const registry = new Registry({
    clock: new FakeClock(),
    onCollectError: (error) => assert.fail(String(error)),
  });
  const clock = new FakeClock();
  const state = { questions: 0, ports: portsOf(['a', 'b', 'c'], 1) };
  const read = async () => {
    state.questions++;
    return state.ports;
  };
  registerServiceMetrics(registry, { kinds: new Set(kinds), max, meter: { read }, clock });
  return { registry, state, clock };
}

async function linesOf(registry: Registry, name: string): Promise<string[]> {
  const text = formatText(await registry.gather());
  return text.split('\n').filter((line) => line.startsWith(`kubeproxy_ts_service_${name}{`));
}

test('figures of both families are one series per service port, and one question per scrape', async () => {
  const { registry, state } = scrape(['connections', 'bytes'], 10);
  assert.deepEqual(await linesOf(registry, 'connections_total'), [
    'kubeproxy_ts_service_connections_total{namespace="default",port="http",service="a"} 20',
    'kubeproxy_ts_service_connections_total{namespace="default",port="http",service="b"} 40',
    'kubeproxy_ts_service_connections_total{namespace="default",port="http",service="c"} 60',
  ]);
  assert.equal(state.questions, 1);
  const bytes = await linesOf(registry, 'bytes_total');
  assert.ok(
    bytes.includes(
      'kubeproxy_ts_service_bytes_total{direction="in",namespace="default",port="http",service="a"} 200',
    ),
  );
  assert.equal((await linesOf(registry, 'open_connections')).length, 3);
  assert.equal((await linesOf(registry, 'failed_connections_total')).length, 15);
});

test('service ports beyond the maximum share a series', async () => {
  const { registry } = scrape(['connections'], 1);
  assert.deepEqual(await linesOf(registry, 'connections_total'), [
    'kubeproxy_ts_service_connections_total{namespace="default",port="http",service="a"} 20',
    'kubeproxy_ts_service_connections_total{namespace="",port="",service="other"} 100',
  ]);
  assert.deepEqual(await linesOf(registry, 'bytes_total'), []);
});

test('the total of the shared series does not go back when a service port leaves it', async () => {
  const { registry, state, clock } = scrape(['connections'], 1);
  await linesOf(registry, 'connections_total');
  state.ports = portsOf(['a', 'b'], 2);
  await clock.advance(1_000);
  assert.deepEqual(await linesOf(registry, 'connections_total'), [
    'kubeproxy_ts_service_connections_total{namespace="default",port="http",service="a"} 40',
    'kubeproxy_ts_service_connections_total{namespace="",port="",service="other"} 140',
  ]);
});
