import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { Registry } from './registry.ts';
import { formatText } from './text-exposition.ts';

function setup(collectTimeout?: number) {
  const clock = new FakeClock();
  const errors: string[] = [];
  const registry = new Registry({
    clock,
    onCollectError: (error, metrics) => errors.push(`${metrics}: ${error}`),
    ...(collectTimeout === undefined ? {} : { collectTimeout }),
  });
  return { clock, errors, registry, text: async () => formatText(await registry.gather()) };
}

test('metrics are sorted by name, labels by name, series by label values', async () => {
  const { registry, text } = setup();
  const gauge = registry.gauge({ name: 'b_gauge', help: 'rules', labels: ['table', 'ip_family'] });
  gauge.set(3, { table: 'nat', ip_family: 'IPv6' });
  gauge.set(2, { table: 'nat', ip_family: 'IPv4' });
  gauge.add(1, { table: 'filter', ip_family: 'IPv4' });
  registry.counter({ name: 'a_total', help: 'things', stability: 'ALPHA' }).inc(undefined, 1e6);
  assert.equal(
    await text(),
    `# HELP a_total [ALPHA] things
# TYPE a_total counter
a_total 1e+06
# HELP b_gauge rules
# TYPE b_gauge gauge
b_gauge{ip_family="IPv4",table="filter"} 1
b_gauge{ip_family="IPv4",table="nat"} 2
b_gauge{ip_family="IPv6",table="nat"} 3
`,
  );
});

test('a metric without labels starts at zero, one with labels appears on first use', async () => {
  const { registry, text } = setup();
  registry.counter({ name: 'plain_total', help: 'h' });
  const labelled = registry.counter({ name: 'labelled_total', help: 'h', labels: ['code'] });
  registry.histogram({ name: 'plain_seconds', help: 'h', buckets: [1] });
  assert.match(await text(), /^plain_total 0$/m);
  assert.match(await text(), /^plain_seconds_count 0$/m);
  assert.doesNotMatch(await text(), /labelled/);
  labelled.inc({ code: '200' });
  assert.match(await text(), /^labelled_total\{code="200"\} 1$/m);
  registry.reset();
  assert.doesNotMatch(await text(), /labelled/);
  assert.match(await text(), /^plain_total 0$/m);
});

test('histogram buckets are cumulative and their bounds are formatted as in Go', async () => {
  const { registry, text } = setup();
  const histogram = registry.histogram({
    name: 'h',
    help: 'h',
    labels: ['ip_family'],
    buckets: [0.001, 1, 2592000],
  });
  for (const value of [0.001, 0.0011, 1, 5, 3e6, Number.NaN]) histogram.observe(value, { ip_family: 'IPv4' });
  const lines = (await text()).split('\n').filter((line) => line.startsWith('h_'));
  assert.deepEqual(lines, [
    'h_bucket{ip_family="IPv4",le="0.001"} 1',
    'h_bucket{ip_family="IPv4",le="1"} 3',
    'h_bucket{ip_family="IPv4",le="2.592e+06"} 4',
    'h_bucket{ip_family="IPv4",le="+Inf"} 6',
    'h_sum{ip_family="IPv4"} NaN',
    'h_count{ip_family="IPv4"} 6',
  ]);
});

test('label values and help are escaped', async () => {
  const { registry, text } = setup();
  registry.counter({ name: 'x_total', help: 'a\\b\n"c"', labels: ['l'] }).inc({ l: 'a\\b\n"c"' });
  assert.equal(
    await text(),
    `# HELP x_total a\\\\b\\n"c"\n# TYPE x_total counter\nx_total{l="a\\\\b\\n\\"c\\""} 1\n`,
  );
});

test('wrong labels, names, values and buckets throw', () => {
  const { registry } = setup();
  const counter = registry.counter({ name: 'c_total', help: 'h', labels: ['code'] });
  assert.throws(() => counter.inc(), /metric c_total: label code is missing/);
  assert.throws(() => counter.inc({ kode: '1' }), /label code is missing/);
  assert.throws(() => counter.inc({ code: '1', extra: 'x' }), /unknown label extra/);
  assert.throws(() => counter.inc({ code: '1' }, -1), /cannot go down/);
  assert.throws(() => registry.counter({ name: 'c_total', help: 'h' }), /registered twice/);
  assert.throws(() => registry.counter({ name: 'c-d', help: 'h' }), /not a metric name/);
  assert.throws(() => registry.gauge({ name: 'g', help: 'h', labels: ['le'] }), /bad label le/);
  assert.throws(
    () => registry.histogram({ name: 'h', help: 'h', buckets: [1, 1] }),
    /must be finite and rise/,
  );
});

test('scraped metrics are read at scrape time, and absent without a reader or on failure', async () => {
  const { registry, errors, text } = setup();
  const scraped = registry.scraped('counter', { name: 's_total', help: 'h', labels: ['protocol'] });
  assert.equal(await text(), '');
  scraped.readFrom(async () => [{ labels: { protocol: 'TCP' }, value: 7 }]);
  assert.match(await text(), /^s_total\{protocol="TCP"\} 7$/m);
  scraped.readFrom(() => {
    throw new Error('nfacct is gone');
  });
  assert.equal(await text(), '');
  scraped.readFrom(() => [{ labels: {}, value: 1 }]);
  assert.equal(await text(), '');
  assert.deepEqual(errors, [
    's_total: Error: nfacct is gone',
    's_total: TypeError: metric s_total: label protocol is missing',
  ]);
});

test('a collector that hangs is skipped, and not started again until it answers', async () => {
  const { registry, clock, errors, text } = setup(2000);
  let calls = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  registry.scraped('gauge', { name: 'slow', help: 'h' }).readFrom(async () => {
    calls++;
    await promise;
    return [{ labels: {}, value: 1 }];
  });
  registry.counter({ name: 'quick_total', help: 'h' });
  const first = text();
  const second = text();
  await clock.advance(2000);
  for (const page of [await first, await second]) {
    assert.match(page, /quick_total 0/);
    assert.doesNotMatch(page, /slow/);
  }
  assert.equal(errors.length, 2);
  assert.match(errors[0] ?? '', /slow: Error: no answer in 2000 ms/);
  assert.equal(calls, 1);
  resolve();
  await clock.advance(0);
  assert.match(await text(), /^slow 1$/m);
  assert.equal(calls, 2);
  assert.equal(clock.pending, 0);
});

test('a collector that takes four seconds on an overloaded machine is part of the scrape', async () => {
  const { registry, clock, errors, text } = setup();
  registry.scraped('counter', { name: 'late_total', help: 'h' }).readFrom(async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    clock.setTimeout(resolve, 4_000);
    await promise;
    return [{ labels: {}, value: 7 }];
  });
  const page = text();
  await clock.advance(4_000);
  assert.match(await page, /^late_total 7$/m);
  assert.deepEqual(errors, []);
  assert.equal(clock.pending, 0);
});

test('gather with names runs only the collectors of these names', async () => {
  const { registry } = setup();
  let asked = 0;
  registry.scraped('gauge', { name: 'other', help: 'h' }).readFrom(() => {
    asked++;
    return [{ labels: {}, value: 1 }];
  });
  registry.counter({ name: 'wanted_total', help: 'h' });
  const families = await registry.gather(new Set(['wanted_total', 'nosuch']));
  assert.deepEqual(
    families.map(({ name }) => name),
    ['wanted_total'],
  );
  assert.equal(asked, 0);
});
