/** The journal of a running program, as kube-proxyctl shows it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { JournalItem, JournalReport } from '../../src/inspect/api.ts';
import { enterNamespace, labUnavailable, run as sh } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { Site } from '../program/started.ts';
import { complaint, eventuallyReported, printed } from './ctl.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

/** The items of one event. */
async function items(event: JournalItem['event'], args = ''): Promise<readonly JournalItem[]> {
  const report = JSON.parse(await printed(`journal ${args}-o json`)) as JournalReport;
  return report.items.filter((item) => item.event === event);
}

async function eventuallyNoted(event: JournalItem['event'], pattern: RegExp): Promise<void> {
  await eventuallyReported(`${event} in the journal`, async () =>
    (await items(event)).some((item) => pattern.test(JSON.stringify(item))),
  );
}

describe('kube-proxyctl journal', { skip: skip ?? false }, () => {
  let site: Site;
  let config: string;

  before(async () => {
    site = await Site.open();
    site.api.put('services', apiService('web'));
    site.api.put('services', apiService('cart', 80, { clusterIP: '10.96.0.2' }));
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5']));
    config = site.writeConfig({ metricsBindAddress: '127.0.0.1:10249' });
    const proxy = await site.start(config);
    await proxy.serves('http://127.0.0.1:10249');
    await eventuallyNoted('Sync', /"kind":"full".*"servicePorts":2/);
  });
  after(() => site.close());

  it('has the start of the program', async () => {
    const [start] = await items('Start');
    assert.match(start?.texts[0] ?? '', /^kube-proxy-ts .* in nftables mode on node node-a, process \d+$/);
  });

  it('has a changed Service with the latency from the API to the kernel', async () => {
    const slice = apiSlice('web', ['10.244.0.5', '10.244.0.6']);
    const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() };
    site.api.put('endpointSlices', { ...slice, metadata: { ...slice.metadata, annotations } });
    await eventuallyNoted('Sync', /"kind":"partial".*"serviceCount":1|"serviceCount":1.*"kind":"partial"/);
    const [change] = (await items('Sync', 'web ')).slice(-1);
    assert.equal(change?.services[0]?.service, 'shop/web');
    assert.ok((change?.services[0]?.latencySeconds ?? -1) >= 0, JSON.stringify(change));
    assert.deepEqual(change?.sync?.latencySeconds, change?.services[0]?.latencySeconds);
    assert.ok((change?.sync?.waitSeconds ?? -1) >= 0);
    assert.deepEqual((await items('Start', 'web ')).length, 0);
    assert.match(await printed('journal 10.96.0.1'), /partial sync, 1 service port changed: shop\/web$/m);
    assert.doesNotMatch(await printed('journal shop/cart'), /partial sync/);
    assert.match(await printed('journal -n blog'), /^TIME +EVENT .*\n$/);
  });

  it('has repairs with the program that caused them', async () => {
    sh('nft', 'flush', 'table', 'ip', 'kube-proxy');
    await eventuallyNoted('Repair', /nft.* had changed our rules \(rule deleted: \d+\)/);
  });

  it('has objects that cannot be programmed, by the name of the Service', async () => {
    const { spec, ...rest } = apiService('odd', 80, { clusterIP: '10.96.0.3' });
    site.api.put('services', { ...rest, spec: { ...(spec as object), externalIPs: ['not-an-address'] } });
    await eventuallyNoted('NotProgrammed', /not-an-address/);
    assert.equal((await items('NotProgrammed', 'shop/odd ')).length, 1);
    await eventuallyNoted('Problem', /ObjectsNotProgrammed/);
    site.api.delete('services', 'shop', 'odd');
    await eventuallyNoted('ProblemSolved', /ObjectsNotProgrammed/);
  });

  it('has watches that are lost and regained', async () => {
    for (let i = 0; i < 1000; i++) site.api.faults.next({ kind: 'reset' });
    site.api.disconnect();
    await eventuallyNoted('WatchLost', /services: /);
    site.api.faults.clear();
    await eventuallyNoted('WatchRegained', /services/);
  });

  it('has a configuration file that cannot be used', async () => {
    writeFileSync(config, 'mode: [');
    await eventuallyNoted('Configuration', /cannot be used/);
  });

  it('is limited by --since, and goes on with -w', async () => {
    assert.deepEqual(await items('Start', '--since 1ms '), []);
    assert.match(await complaint('journal --since yesterday'), /neither a time in RFC 3339 nor a duration/);
    assert.match(await printed('journal -w --count 1'), /^TIME +EVENT +FAMILY +TOOK +FROM API +WHAT\n/);
    const lines = (await printed('journal -w --count 2 --interval 1ms -o json')).trim().split('\n');
    const events = lines.map((line) => (JSON.parse(line) as JournalItem).event);
    assert.equal(events.filter((event) => event === 'Start').length, 1);
    assert.match(await printed('journal -o yaml'), /^apiVersion: inspect\.kube-proxy-ts\/v1\n/);
  });
});
