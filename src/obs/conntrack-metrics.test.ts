import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { registerConntrackMetrics } from './conntrack-metrics.ts';
import { Registry } from './registry.ts';

/** The values of a scrape, of a /proc that has only these files. */
async function scrape(files: Readonly<Record<string, string>>): Promise<Record<string, number | undefined>> {
  const registry = new Registry({
    clock: new FakeClock(),
    onCollectError: (error) => assert.fail(String(error)),
  });
  registerConntrackMetrics(registry, {
    read: async (path) => files[path] ?? missing(path),
  });
  const families = await registry.gather();
  return Object.fromEntries(
    families.flatMap((f) => (f.type === 'histogram' ? [] : [[f.name, f.series[0]?.value]])),
  );
}

async function missing(path: string): Promise<never> {
  throw Object.assign(new Error(`ENOENT: no such file or directory, open '/proc/${path}'`), {
    code: 'ENOENT',
  });
}

const count = { 'sys/net/netfilter/nf_conntrack_count': '1234\n' };
const max = { 'sys/net/netfilter/nf_conntrack_max': '262144\n' };

test('metrics of the connection table add up the hexadecimal columns of all CPUs', async () => {
  // As kernel 6.18 has it: two blanks separate some columns.
  const statistics = `entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart
000004d2  00000000 00000001 00000000 00000007 00000008 00000000 00000000 00000000 0000000a 00000002 00000000 00000000  00000000 00000000 00000000 00000000
000004d2  00000000 00000001 00000000 00000007 00000008 00000000 00000000 00000000 000000ff 00000001 00000003 00000000  00000000 00000000 00000000 00000000
`;
  assert.deepEqual(await scrape({ ...count, ...max, 'self/net/stat/nf_conntrack': statistics }), {
    kubeproxy_ts_conntrack_dropped_total: 3,
    kubeproxy_ts_conntrack_early_dropped_total: 3,
    kubeproxy_ts_conntrack_entries: 1234,
    kubeproxy_ts_conntrack_entries_limit: 262144,
    kubeproxy_ts_conntrack_insert_failed_total: 265,
  });
});

test('metrics of the connection table are absent where the kernel does not have them', async () => {
  assert.deepEqual(await scrape({}), {});
  assert.deepEqual(await scrape(count), { kubeproxy_ts_conntrack_entries: 1234 });
  assert.deepEqual(await scrape({ 'self/net/stat/nf_conntrack': 'entries drop\n00000001 0000001f\n' }), {
    kubeproxy_ts_conntrack_dropped_total: 31,
  });
});

test('odd contents of the files leave out only their own metrics', async () => {
  const odd = {
    'sys/net/netfilter/nf_conntrack_count': 'many\n',
    'self/net/stat/nf_conntrack': 'drop\nzz\n',
  };
  assert.deepEqual(await scrape({ ...odd, ...max }), { kubeproxy_ts_conntrack_entries_limit: 262144 });
});
