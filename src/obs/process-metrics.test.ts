import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { type ProcReader, processStartTime, registerProcessMetrics } from './process-metrics.ts';
import { Registry } from './registry.ts';
import { registerRuntimeMetrics } from './runtime-metrics.ts';

const files: Record<string, string> = {
  'self/stat':
    '42 (kube (x) proxy) S 1 42 42 0 -1 4194560 100 0 0 0 250 150 0 0 20 0 11 0 12345 1048576000 5000 18446744073709551615 1',
  stat: 'cpu  1 2 3\nbtime 1700000000\nprocesses 1\n',
  'self/limits': `Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 524288               files
Max address space         unlimited            unlimited            bytes
`,
  'self/net/netstat': 'TcpExt: A B\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 12345 678\n',
};

const proc: ProcReader = {
  read: async (path) => files[path] ?? assert.fail(path),
  list: async () => ['0', '1', '2', '3'],
  residentBytes: () => 4096,
};

async function values(register: (registry: Registry) => void): Promise<Record<string, number | undefined>> {
  const registry = new Registry({
    clock: new FakeClock(),
    onCollectError: (error) => assert.fail(String(error)),
  });
  register(registry);
  const families = await registry.gather();
  return Object.fromEntries(
    families.flatMap((f) => (f.type === 'histogram' ? [] : [[f.name, f.series[0]?.value]])),
  );
}

test('process metrics are read from /proc', async () => {
  assert.deepEqual(await values((registry) => registerProcessMetrics(registry, proc)), {
    process_cpu_seconds_total: 4,
    process_max_fds: 1024,
    process_network_receive_bytes_total: 12345,
    process_network_transmit_bytes_total: 678,
    process_open_fds: 3,
    process_resident_memory_bytes: 4096,
    process_start_time_seconds: 1700000123.45,
    process_virtual_memory_bytes: 1048576000,
    process_virtual_memory_max_bytes: 2 ** 64,
  });
  assert.equal(await processStartTime(proc), 1700000123.45);
});

test('process metrics that /proc does not have are omitted', async () => {
  const shown = await values((registry) =>
    registerProcessMetrics(registry, {
      ...proc,
      read: async (path) => (path === 'self/stat' ? (files[path] ?? '') : ''),
    }),
  );
  assert.deepEqual(Object.keys(shown).sort(), [
    'process_cpu_seconds_total',
    'process_open_fds',
    'process_resident_memory_bytes',
    'process_virtual_memory_bytes',
  ]);
});

test('process metrics of this process are plausible', async () => {
  const shown = await values((registry) => registerProcessMetrics(registry));
  assert.ok((shown.process_cpu_seconds_total ?? 0) > 0);
  assert.ok((shown.process_open_fds ?? 0) >= 3);
  assert.ok((shown.process_resident_memory_bytes ?? 0) > 1e6);
  const started = performance.timeOrigin / 1000;
  assert.ok(Math.abs((shown.process_start_time_seconds ?? 0) - started) < 60);
});

test('runtime metrics cover the heap and the event loop', async () => {
  const shown = await values(registerRuntimeMetrics);
  assert.ok((shown.nodejs_heap_size_used_bytes ?? 0) > 1e6);
  assert.ok((shown.nodejs_heap_size_total_bytes ?? 0) >= (shown.nodejs_heap_size_used_bytes ?? 0));
  for (const name of ['', '_p99', '_max']) {
    const lag = shown[`nodejs_eventloop_lag${name}_seconds`];
    assert.ok(lag !== undefined && lag >= 0, name);
  }
});
