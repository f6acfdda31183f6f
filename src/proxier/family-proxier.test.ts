import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import type { Backend, Condition, RepairRecord, SyncRequest, SyncResult } from '../backends/backend.ts';
import { Journal } from '../inspect/journal.ts';
import type { EndpointSliceObject, ServiceObject } from '../model/objects.ts';
import type { ServiceDefaults } from '../model/service-ports.ts';
import { silentLogger } from '../obs/log.ts';
import { createProxyMetrics } from '../obs/proxy-metrics.ts';
import { Registry } from '../obs/registry.ts';
import { formatText } from '../obs/text-exposition.ts';
import { FamilyProxier, type ProxierSettings } from './family-proxier.ts';

const SECOND = 1000;

function service(name: string, overrides: Partial<ServiceObject> = {}): ServiceObject {
  return {
    namespace: 'shop',
    name,
    resourceVersion: '1',
    uid: '',
    createdAt: 0,
    type: 'ClusterIP',
    clusterIP: '10.96.0.1',
    clusterIPs: ['10.96.0.1'],
    ipFamilies: ['IPv4'],
    externalIPs: [],
    loadBalancerIngress: [],
    loadBalancerSourceRanges: [],
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
    healthCheckNodePort: 0,
    sessionAffinity: 'None',
    ports: [{ name: '', protocol: 'TCP', port: 80, nodePort: 0 }],
    ...overrides,
  };
}

function slice(serviceName: string, addresses: readonly string[], triggerTime?: string): EndpointSliceObject {
  return {
    namespace: 'shop',
    name: `${serviceName}-1`,
    resourceVersion: addresses.join() + triggerTime,
    serviceName,
    addressType: 'IPv4',
    ...(triggerTime !== undefined && { triggerTime }),
    endpoints: addresses.map((address) => ({ address, ready: true, serving: true, terminating: false })),
    ports: [{ name: '', protocol: 'TCP', port: 8080 }],
  };
}

/** Records its sync requests; fails when `failure` is set. */
class RecordingBackend implements Backend {
  readonly family = 'IPv4';
  readonly requests: { changed: string[] | 'all'; endpoints: Record<string, string[]> }[] = [];
  /** Of every request. */
  readonly departed: string[] = [];
  readonly serviceCIDRs: (readonly string[])[] = [];
  skipsHourlySync = false;
  usesServiceCIDRs = true;
  condition: Condition = {};
  repairs: RepairRecord = { count: 0, wrongMs: 0 };
  failure: Error | undefined;
  result: SyncResult = { refused: [] };

  async sync({ changed, plans, departed, serviceCIDRs }: SyncRequest): Promise<SyncResult> {
    this.serviceCIDRs.push(serviceCIDRs);
    this.departed.push([...(departed?.keys() ?? [])].join());
    this.requests.push({
      changed: changed === 'all' ? 'all' : [...changed].sort(),
      endpoints: Object.fromEntries([...plans].map(([key, plan]) => [key, plan.cluster.map(({ id }) => id)])),
    });
    if (this.failure) throw this.failure;
    return this.result;
  }

  isClosed = false;

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

function settingsWith(backend: Backend, healthCheckAddresses = ['0.0.0.0']): ProxierSettings {
  return { backend, minSyncPeriod: SECOND, syncPeriod: 30 * SECOND, healthCheckAddresses };
}

function harness(defaults?: ServiceDefaults, usesServiceCIDRs = true) {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const backend = new RecordingBackend();
  backend.usesServiceCIDRs = usesServiceCIDRs;
  const registry = new Registry({ clock, onCollectError: (error) => assert.fail(String(error)) });
  const log: string[] = [];
  const journal = new Journal(clock);
  const proxier = new FamilyProxier({
    family: 'IPv4',
    nodeName: 'n1',
    settings: settingsWith(backend),
    allowExternalIPs: true,
    countsServices: false,
    ...(defaults && { defaults }),
    metrics: createProxyMetrics(registry, ['partial syncs']),
    health: { queued: () => log.push('queued'), updated: () => log.push('updated') },
    serviceHealth: {
      listenOn: (addresses) => log.push(`listen on ${addresses.join(' ')}`),
      sync: () => log.push('service health'),
    },
    flows: {
      note: (keys) => {
        log.push(`note ${[...keys].sort().join(' ')}`);
      },
      reconcile: () => log.push('reconcile'),
      close: async () => {},
    },
    journal,
    onProblem: (problem) => log.push(`problem ${problem.field}`),
    onRefused: (refused) => log.push(`refused ${refused.map(({ key }) => key).join(' ')}`),
    clock,
    logger: silentLogger,
  });
  log.length = 0;
  const metric = async (line: string) => {
    const text = formatText(await registry.gather());
    return text.split('\n').find((candidate) => candidate.startsWith(line));
  };
  return { clock, backend, proxier, log, journal, metric };
}

function listed(proxier: FamilyProxier): void {
  for (const resource of ['services', 'endpointSlices', 'serviceCIDRs'] as const) proxier.synced(resource);
}

test('the proxier writes nothing before all lists are complete; its first sync is full', async () => {
  const { clock, backend, proxier } = harness();
  proxier.start();
  proxier.updateService(undefined, service('web'));
  proxier.updateSlice(slice('web', ['10.1.0.1']), false);
  proxier.synced('services');
  await clock.advance(5 * SECOND);
  proxier.synced('serviceCIDRs');
  await clock.advance(5 * SECOND);
  assert.deepEqual(backend.requests, []);
  proxier.synced('endpointSlices');
  await clock.advance(1);
  assert.deepEqual(backend.requests, [{ changed: 'all', endpoints: { 'shop/web/TCP': ['10.1.0.1:8080'] } }]);
});

test('the first sync waits a second for ServiceCIDRs, where the mode uses them', async () => {
  const { clock, backend, proxier } = harness();
  proxier.start();
  proxier.synced('services');
  proxier.synced('endpointSlices');
  await clock.advance(SECOND - 1);
  assert.equal(backend.requests.length, 0);
  proxier.setServiceCIDRs(['10.96.0.0/16']);
  proxier.synced('serviceCIDRs');
  await clock.advance(0);
  assert.deepEqual(backend.serviceCIDRs, [['10.96.0.0/16']]);

  const late = harness();
  late.proxier.start();
  late.proxier.synced('services');
  late.proxier.synced('endpointSlices');
  await late.clock.advance(SECOND);
  assert.deepEqual(late.backend.serviceCIDRs, [[]]);
  // They come in the end.
  late.proxier.setServiceCIDRs(['10.96.0.0/16']);
  late.proxier.synced('serviceCIDRs');
  await late.clock.advance(SECOND);
  assert.deepEqual(late.backend.serviceCIDRs, [[], ['10.96.0.0/16']]);

  const indifferent = harness(undefined, false);
  indifferent.proxier.start();
  indifferent.proxier.synced('services');
  indifferent.proxier.synced('endpointSlices');
  await indifferent.clock.advance(0);
  assert.equal(indifferent.backend.requests.length, 1);
});

test('a sync names only the changed plans, and health records its request and its success', async () => {
  const { clock, backend, proxier, log } = harness();
  proxier.start();
  proxier.updateService(undefined, service('web'));
  proxier.updateService(undefined, service('api', { clusterIP: '10.96.0.2', clusterIPs: ['10.96.0.2'] }));
  listed(proxier);
  await clock.advance(2 * SECOND);
  log.length = 0;
  proxier.updateSlice(slice('api', ['10.1.0.2']), false);
  await clock.advance(1);
  assert.deepEqual(backend.requests.at(-1), {
    changed: ['shop/api/TCP'],
    endpoints: { 'shop/web/TCP': [], 'shop/api/TCP': ['10.1.0.2:8080'] },
  });
  assert.deepEqual(log, [
    'queued',
    'note shop/api/TCP',
    'reconcile',
    'refused ',
    'updated',
    'service health',
  ]);
});

test('a failed sync is retried in full, and keeps its latency samples and its flows to reconcile', async () => {
  const { clock, backend, proxier, log, metric } = harness();
  proxier.start();
  proxier.updateService(undefined, service('web'));
  listed(proxier);
  await clock.advance(2 * SECOND);
  backend.failure = new Error('no buffer space');
  log.length = 0;
  const triggered = new Date(clock.now()).toISOString();
  proxier.updateSlice(slice('web', ['10.1.0.1'], triggered), false);
  await clock.advance(2 * SECOND);
  assert.deepEqual(log, ['queued', 'note shop/web/TCP']);
  backend.failure = undefined;
  await clock.advance(30 * SECOND);
  assert.equal(backend.requests.at(-1)?.changed, 'all');
  assert.deepEqual(log.slice(2), ['note ', 'reconcile', 'refused ', 'updated', 'service health']);
  assert.match(
    (await metric('kubeproxy_network_programming_duration_seconds_count')) ?? '',
    /ip_family="IPv4"} 1$/,
  );
});

test('firstSync resolves only when a sync has succeeded', async () => {
  const { clock, backend, proxier } = harness();
  let isResolved = false;
  proxier.firstSync.then(() => {
    isResolved = true;
  });
  backend.failure = new Error('EBUSY');
  proxier.start();
  listed(proxier);
  await clock.advance(SECOND);
  assert.equal(backend.requests.length, 1);
  assert.ok(!isResolved);
  backend.failure = undefined;
  await clock.advance(30 * SECOND);
  assert.ok(isResolved);
});

test('refused service ports are reported and do not fail the sync', async () => {
  const { clock, backend, proxier, log } = harness();
  backend.result = { refused: [{ key: 'shop/web/TCP', error: new Error('EINVAL') }] };
  proxier.start();
  proxier.updateService(undefined, service('web'));
  listed(proxier);
  await clock.advance(1);
  assert.ok(log.includes('refused shop/web/TCP'));
  assert.ok(log.includes('updated'));
});

test('a zone that arrives before the first lists marks a sync as due', async () => {
  const { backend, clock, proxier, log } = harness();
  proxier.start();
  proxier.setZone('za');
  await clock.advance(2 * SECOND);
  assert.deepEqual([log, backend.requests.length], [['updated', 'queued'], 0]);
});

test('a new zone causes a full sync; the same zone causes none', async () => {
  const { clock, backend, proxier } = harness();
  proxier.start();
  listed(proxier);
  await clock.advance(2 * SECOND);
  const before = backend.requests.length;
  proxier.setZone('za');
  await clock.advance(2 * SECOND);
  proxier.setZone('za');
  await clock.advance(2 * SECOND);
  assert.deepEqual(
    backend.requests.slice(before).map(({ changed }) => changed),
    ['all'],
  );
});

test('a repair syncs only changes, counts as a full sync, and does not wait for the minimum interval', async () => {
  const { clock, backend, proxier } = harness();
  proxier.start();
  listed(proxier);
  await clock.advance(1);
  proxier.repair();
  await clock.advance(1);
  assert.deepEqual(
    backend.requests.map(({ changed }) => changed),
    ['all', []],
  );
  assert.deepEqual([proxier.activity.syncs, proxier.activity.lastSync?.kind], [2, 'full']);
});

test('the proxier reports its syncs, failures, repairs and pending changes', async () => {
  const { clock, backend, proxier } = harness();
  proxier.start();
  assert.equal(proxier.isInitialised, false);
  proxier.updateService(undefined, service('web'));
  proxier.updateSlice(slice('web', ['10.1.0.1']), false);
  assert.deepEqual(proxier.pending, { services: 1, slices: 1 });
  listed(proxier);
  await clock.advance(2 * SECOND);
  const { activity } = proxier;
  assert.deepEqual([activity.syncs, activity.lastSync?.kind, activity.lastSync?.changed], [1, 'full', 1]);
  assert.deepEqual([proxier.plans.size, proxier.totalEndpoints, proxier.isInitialised], [1, 1, true]);
  assert.deepEqual(proxier.pending, { services: 0, slices: 0 });
  proxier.updateSlice(slice('web', ['10.1.0.2']), false);
  await clock.advance(2 * SECOND);
  assert.deepEqual([activity.syncs, activity.lastSync?.kind], [2, 'partial']);
  backend.failure = new Error('no buffer space');
  proxier.repair();
  await clock.advance(1);
  assert.deepEqual([activity.syncs, activity.failures, activity.repairs], [2, 1, 0]);
  const last = { at: clock.now(), by: 'nft[42]', changes: 'rule deleted: 1' };
  backend.repairs = { count: 3, wrongMs: 5, last };
  assert.deepEqual([activity.repairs, activity.lastRepair], [3, last]);
  assert.deepEqual(activity.lastFailure, { at: clock.now() - 1, message: 'no buffer space' });
  assert.equal(activity.isSyncing, false);
});

test('new ServiceCIDRs cause a sync at once', async () => {
  const { clock, backend, proxier } = harness();
  proxier.start();
  listed(proxier);
  await clock.advance(2 * SECOND);
  const before = backend.requests.length;
  proxier.setServiceCIDRs(['10.96.0.0/16']);
  await clock.advance(1);
  assert.equal(backend.requests.length, before + 1);
});

test('new ServiceCIDRs cause no sync when the backend does not use them', async () => {
  const { clock, backend, proxier, log } = harness();
  backend.usesServiceCIDRs = false;
  proxier.start();
  listed(proxier);
  await clock.advance(2 * SECOND);
  const before = backend.requests.length;
  log.length = 0;
  proxier.setServiceCIDRs(['10.96.0.0/16']);
  await clock.advance(2 * SECOND);
  assert.equal(backend.requests.length, before);
  assert.deepEqual(log, []);
  assert.deepEqual(proxier.serviceCIDRs, ['10.96.0.0/16']);
});

test('after an hour without a full sync the next sync is full', async () => {
  const { clock, backend, proxier } = harness();
  proxier.start();
  listed(proxier);
  await clock.advance(3601 * SECOND);
  const last = backend.requests.at(-1);
  assert.ok(backend.requests.length >= 2);
  assert.equal(last?.changed, 'all');
});

/** A Service and its slice, whose only port has this name. */
function named(portName: string): { service: ServiceObject; slice: EndpointSliceObject } {
  const ports = [{ name: portName, protocol: 'TCP', port: 80, nodePort: 0 }];
  const endpoints = slice('web', ['10.1.0.1']);
  return {
    service: service('web', { ports }),
    slice: {
      ...endpoints,
      resourceVersion: portName,
      ports: [{ name: portName, protocol: 'TCP', port: 8080 }],
    },
  };
}

/** A proxier that serves the port `old`, and what its backend got since then. */
async function renaming() {
  const all = harness();
  const [old, renamed] = [named('old'), named('new')];
  all.proxier.updateService(undefined, old.service);
  all.proxier.updateSlice(old.slice, false);
  all.proxier.start();
  listed(all.proxier);
  await all.clock.advance(2 * SECOND);
  all.backend.requests.length = 0;
  const endpoints = () => all.backend.requests.map((request) => request.endpoints);
  return { ...all, old, renamed, endpoints };
}

const before = { 'shop/web:old/TCP': ['10.1.0.1:8080'] };
const afterwards = { 'shop/web:new/TCP': ['10.1.0.1:8080'] };

test('a port that is renamed keeps its endpoints when its slice follows within a second', async () => {
  const { clock, proxier, old, renamed, endpoints, metric } = await renaming();
  proxier.updateService(old.service, renamed.service);
  await clock.advance(0.5 * SECOND);
  assert.deepEqual(endpoints(), [before]);
  assert.match((await metric('kubeproxy_sync_proxy_rules_service_changes_pending')) ?? '', / 1$/);
  proxier.updateSlice(renamed.slice, false);
  await clock.advance(2 * SECOND);
  assert.deepEqual(endpoints(), [before, afterwards]);
  assert.match((await metric('kubeproxy_sync_proxy_rules_service_changes_pending')) ?? '', / 0$/);
  await clock.advance(10 * SECOND);
  assert.equal(endpoints().length, 2, 'nothing is left to wait for');
});

test('a renamed port waits no longer than a second for its slice', async () => {
  const { clock, proxier, old, renamed, endpoints } = await renaming();
  proxier.updateService(old.service, renamed.service);
  await clock.advance(5 * SECOND);
  assert.deepEqual(endpoints(), [before, { 'shop/web:new/TCP': [] }]);
  proxier.updateSlice(renamed.slice, false);
  await clock.advance(2 * SECOND);
  assert.deepEqual(endpoints().at(-1), afterwards);
});

test('a port that is renamed keeps the endpoints of all slices until the last one follows', async () => {
  const { clock, proxier, old, renamed, endpoints, metric } = await renaming();
  const second = (of: EndpointSliceObject): EndpointSliceObject => ({
    ...of,
    name: 'web-2',
    endpoints: [{ address: '10.1.0.2', ready: true, serving: true, terminating: false }],
  });
  proxier.updateSlice(second(old.slice), false);
  await clock.advance(2 * SECOND);
  proxier.updateService(old.service, renamed.service);
  await clock.advance(0.3 * SECOND);
  proxier.updateSlice(renamed.slice, false);
  await clock.advance(0.3 * SECOND);
  // The minimum interval between syncs is a second: let one happen in between.
  proxier.repair();
  await clock.advance(0);
  const both = ['10.1.0.1:8080', '10.1.0.2:8080'];
  assert.deepEqual(endpoints().at(-1), { 'shop/web:old/TCP': both });
  assert.deepEqual(proxier.pending, { services: 1, slices: 1 });
  assert.match((await metric('kubeproxy_sync_proxy_rules_endpoint_changes_pending')) ?? '', / 1$/);
  proxier.updateSlice(second(renamed.slice), false);
  proxier.repair();
  await clock.advance(0);
  assert.deepEqual(endpoints().at(-1), { 'shop/web:new/TCP': both });
  assert.deepEqual(proxier.pending, { services: 0, slices: 0 });
});

test('a port that is renamed keeps its endpoints when its Service follows within a second', async () => {
  const { clock, proxier, old, renamed, endpoints } = await renaming();
  proxier.updateSlice(renamed.slice, false);
  await clock.advance(0.5 * SECOND);
  assert.deepEqual(endpoints(), [before]);
  proxier.updateService(old.service, renamed.service);
  await clock.advance(2 * SECOND);
  assert.deepEqual(endpoints(), [before, afterwards]);
});

test('a slice with another port name than its Service waits no longer than a second', async () => {
  const { clock, proxier, renamed, endpoints } = await renaming();
  proxier.updateSlice(renamed.slice, false);
  await clock.advance(5 * SECOND);
  assert.deepEqual(endpoints(), [before, { 'shop/web:old/TCP': [] }]);
});

test('a slice that is deleted, or loses a port for none, is not waited for', async () => {
  const { clock, proxier, old, endpoints } = await renaming();
  proxier.updateSlice({ ...old.slice, resourceVersion: '2', ports: [] }, false);
  await clock.advance(0.5 * SECOND);
  assert.deepEqual(endpoints().at(-1), { 'shop/web:old/TCP': [] });
  proxier.updateSlice({ ...old.slice, resourceVersion: '3' }, false);
  await clock.advance(2 * SECOND);
  assert.deepEqual(endpoints().at(-1), before);
  proxier.updateSlice(old.slice, true);
  await clock.advance(2 * SECOND);
  assert.deepEqual(endpoints().at(-1), { 'shop/web:old/TCP': [] });
});

test('each Service that renames a port has a second of its own', async () => {
  const { clock, proxier, old, renamed, endpoints } = await renaming();
  const of = (object: ServiceObject) => ({
    ...object,
    name: 'api',
    clusterIP: '10.96.0.2',
    clusterIPs: ['10.96.0.2'],
  });
  const sliceOf = (object: EndpointSliceObject) => ({ ...object, name: 'api-1', serviceName: 'api' });
  proxier.updateService(undefined, of(old.service));
  proxier.updateSlice(sliceOf(old.slice), false);
  await clock.advance(2 * SECOND);
  proxier.updateService(old.service, renamed.service);
  await clock.advance(0.9 * SECOND);
  proxier.updateService(of(old.service), of(renamed.service));
  proxier.repair();
  await clock.advance(0.2 * SECOND);
  proxier.repair();
  await clock.advance(0);
  assert.deepEqual(endpoints().at(-1), { 'shop/web:new/TCP': [], 'shop/api:old/TCP': ['10.1.0.1:8080'] });
  await clock.advance(2 * SECOND);
  assert.deepEqual(endpoints().at(-1), { 'shop/web:new/TCP': [], 'shop/api:new/TCP': [] });
});

test('a renamed port whose Service changes back, or is deleted, waits for nothing', async () => {
  const { clock, proxier, old, renamed, endpoints } = await renaming();
  proxier.updateService(old.service, renamed.service);
  await clock.advance(0.5 * SECOND);
  proxier.updateService(renamed.service, old.service);
  await clock.advance(5 * SECOND);
  assert.deepEqual(endpoints().at(-1), before);
  proxier.updateService(old.service, renamed.service);
  proxier.updateService(renamed.service, undefined);
  await clock.advance(2 * SECOND);
  assert.deepEqual(endpoints().at(-1), {});
});

test('a renamed port waits for no slice that has both names or neither, and not without a slice', async () => {
  const portsOf = (...names: string[]) =>
    names.map((name) => ({ name, protocol: 'TCP', port: 8080 }) as const);
  for (const [ports, expected] of [
    [portsOf('old', 'new'), ['10.1.0.1:8080']],
    [portsOf('other'), []],
    [undefined, []],
  ] as const) {
    const { clock, proxier, old, renamed, endpoints } = await renaming();
    if (ports) proxier.updateSlice({ ...old.slice, resourceVersion: '2', ports }, false);
    else proxier.updateSlice(old.slice, true);
    await clock.advance(5 * SECOND);
    proxier.updateService(old.service, renamed.service);
    await clock.advance(0.5 * SECOND);
    assert.deepEqual(endpoints().at(-1), { 'shop/web:new/TCP': expected });
  }
});

test('a Service port that has no endpoints yet, or another number, waits for no slice', async () => {
  const { clock, proxier, old, endpoints } = await renaming();
  const more = { name: 'more', protocol: 'TCP', port: 81, nodePort: 0 } as const;
  const ports = [...old.service.ports, more];
  proxier.updateService(old.service, { ...old.service, resourceVersion: '2', ports });
  await clock.advance(0.5 * SECOND);
  assert.deepEqual(endpoints(), [{ ...before, 'shop/web:more/TCP': [] }]);
});

test('the next full sync comes after an hour also when the clock was set back by a day', async () => {
  const { clock, backend, proxier } = harness();
  proxier.start();
  listed(proxier);
  await clock.advance(10 * SECOND);
  clock.setWall(-24 * 3600 * SECOND);
  const before = backend.requests.length;
  await clock.advance(3601 * SECOND);
  assert.deepEqual(
    backend.requests.slice(before).map(({ changed }) => changed),
    ['all'],
  );
});

test('a backend that skips the hourly full sync still gets repairs', async () => {
  const { clock, backend, proxier } = harness();
  proxier.start();
  listed(proxier);
  backend.skipsHourlySync = true;
  await clock.advance(7300 * SECOND);
  assert.ok(backend.requests.length >= 3);
  assert.ok(backend.requests.slice(1).every(({ changed }) => changed !== 'all'));
  assert.equal(proxier.activity.lastSync?.kind, 'partial');
  proxier.repair();
  await clock.advance(2 * SECOND);
  assert.equal(proxier.activity.lastSync?.kind, 'full');
});

test('the gauges of pending changes rise with events and fall to zero with a sync', async () => {
  const { clock, proxier, metric } = harness();
  proxier.start();
  proxier.updateService(undefined, service('web'));
  proxier.updateSlice(slice('web', ['10.1.0.1']), false);
  assert.equal(
    await metric('kubeproxy_sync_proxy_rules_service_changes_pending'),
    'kubeproxy_sync_proxy_rules_service_changes_pending 1',
  );
  assert.equal(
    await metric('kubeproxy_sync_proxy_rules_endpoint_changes_pending'),
    'kubeproxy_sync_proxy_rules_endpoint_changes_pending 1',
  );
  listed(proxier);
  await clock.advance(1);
  assert.equal(
    await metric('kubeproxy_sync_proxy_rules_endpoint_changes_pending'),
    'kubeproxy_sync_proxy_rules_endpoint_changes_pending 0',
  );
});

test('the problems of a family are an incomplete start, a failed sync, unfinished work and wrong rules, while they last', async () => {
  const { clock, backend, proxier } = harness();
  const problems = () => proxier.problems().map(({ kind, text }) => `${kind}: ${text}`);
  proxier.start();
  assert.deepEqual(problems(), ['Starting: Services and EndpointSlices have not been listed yet']);
  backend.failure = new Error('ENOBUFS');
  listed(proxier);
  await clock.advance(1);
  assert.deepEqual(problems(), ['SyncFailed: the last sync failed: ENOBUFS']);
  backend.failure = undefined;
  backend.condition = { retry: { dueAt: clock.now() + SECOND, reason: 'port 80 is in use' } };
  await clock.advance(30 * SECOND);
  assert.deepEqual(problems(), [
    'SyncIncomplete: a part could not be written and is tried again: port 80 is in use',
  ]);
  const since = clock.now();
  const wrong = { since, by: 'nft[42]', changes: 'rule deleted: 1' };
  backend.condition = { wrong: { ...wrong, dueAt: since + 12 * SECOND } };
  assert.deepEqual(problems(), [
    'RulesWrong: rules are wrong: repair due in 12.0 s; changed by nft[42] (rule deleted: 1)',
  ]);
  backend.condition = { fight: { since, by: 'nft[42]' } };
  assert.deepEqual(problems(), ['RulesContested: another program keeps changing the rules: nft[42]']);
  backend.condition = { wrong };
  assert.deepEqual(proxier.problems(), [
    {
      kind: 'RulesWrong',
      family: 'IPv4',
      since,
      isOutage: true,
      text: 'rules are wrong: repair under way; changed by nft[42] (rule deleted: 1)',
    },
  ]);
  backend.condition = {};
  assert.deepEqual(problems(), []);
});

test('a failed sync is a problem until one succeeds, whatever the clock was set to in between', async () => {
  const { clock, backend, proxier } = harness();
  const problems = () => proxier.problems().map(({ kind, since }) => [kind, since]);
  proxier.start();
  listed(proxier);
  await clock.advance(10 * SECOND);
  clock.setWall(-24 * 3600 * SECOND);
  backend.failure = new Error('ENOBUFS');
  proxier.repair();
  await clock.advance(0);
  const failed = clock.now();
  assert.deepEqual(problems(), [['SyncFailed', failed]]);
  clock.setWall(-24 * 3600 * SECOND);
  assert.deepEqual(problems(), [['SyncFailed', failed - 24 * 3600 * SECOND]]);
  backend.failure = undefined;
  await clock.advance(30 * SECOND);
  assert.deepEqual(problems(), []);
  const { lastSync, lastFailure } = proxier.activity;
  // kube-proxyctl tells by these times whether the failure is over.
  assert.equal((lastSync?.finishedAt ?? 0) - (lastFailure?.at ?? 0), 30 * SECOND);
});

test('the journal has syncs with changed Services and latencies, failures and repairs', async () => {
  const { clock, backend, proxier, journal } = harness();
  proxier.start();
  proxier.updateService(undefined, service('web'));
  listed(proxier);
  await clock.advance(5 * SECOND);
  const trigger = new Date(clock.now() - 30).toISOString();
  proxier.updateSlice(slice('web', ['10.1.0.1'], trigger), false);
  await clock.advance(10 * SECOND);
  backend.failure = new Error('ENOBUFS');
  proxier.updateSlice(slice('web', ['10.1.0.2']), false);
  await clock.advance(10 * SECOND);
  backend.failure = undefined;
  const last = { at: clock.now(), by: 'nft[42]', changes: 'rule deleted: 3' };
  backend.repairs = { count: 1, wrongMs: 5, last };
  await clock.advance(30 * SECOND);
  const entries = journal.entries();
  assert.deepEqual(
    entries.map(({ event, family, texts }) => [event, family, texts]),
    [
      ['Sync', 'IPv4', []],
      ['Sync', 'IPv4', []],
      ['SyncFailed', 'IPv4', ['ENOBUFS']],
      ['Repair', 'IPv4', ['nft[42] had changed our rules (rule deleted: 3)']],
      ['Sync', 'IPv4', []],
    ],
  );
  const [first, change, , , retry] = entries;
  assert.deepEqual([first?.sync?.kind, first?.serviceCount], ['full', 1]);
  assert.deepEqual([change?.sync?.kind, change?.services[0]?.service], ['partial', 'shop/web']);
  assert.ok((change?.sync?.latencyMs ?? 0) >= 30);
  // Measured from the change that the failed sync did not write.
  assert.ok((retry?.sync?.waitMs ?? 0) >= 30 * SECOND, String(retry?.sync?.waitMs));
  await proxier.stop();
});

test('replaced settings sync everything at once through the new backend, and repairs are counted on', async () => {
  const { clock, backend, proxier, log } = harness();
  backend.repairs = { count: 2, wrongMs: 30 };
  proxier.start();
  proxier.updateService(undefined, service('web'));
  listed(proxier);
  await clock.advance(1);
  const next = new RecordingBackend();
  next.repairs = { count: 1, wrongMs: 5 };
  await proxier.pause();
  proxier.updateService(undefined, service('api', { clusterIP: '10.96.0.2', clusterIPs: ['10.96.0.2'] }));
  await clock.advance(5 * SECOND);
  assert.equal(backend.requests.length, 1, 'no sync during the pause');
  log.length = 0;
  await proxier.replace(settingsWith(next, ['192.0.2.1']));
  await proxier.syncReplaced();
  proxier.resume();
  assert.deepEqual(next.requests, [
    { changed: 'all', endpoints: { 'shop/web/TCP': [], 'shop/api/TCP': [] } },
  ]);
  assert.equal(log[0], 'listen on 192.0.2.1');
  assert.ok(backend.isClosed);
  assert.deepEqual([proxier.repairs.count, proxier.repairs.wrongMs], [3, 35]);
});

test('a refusal of a service port that was accepted before is an error of the new settings, another one is not', async () => {
  const { clock, proxier } = harness();
  proxier.start();
  proxier.updateService(undefined, service('web'));
  listed(proxier);
  await clock.advance(1);
  const next = new RecordingBackend();
  next.result = { refused: [{ key: 'shop/web/TCP', error: new Error('no') }] };
  await proxier.pause();
  await proxier.replace(settingsWith(next));
  await assert.rejects(
    proxier.syncReplaced(),
    /refuses 1 service port that it accepted before: shop\/web\/TCP/,
  );
  const again = new RecordingBackend();
  again.result = next.result;
  await proxier.replace(settingsWith(again));
  await proxier.syncReplaced();
});

test('settings replaced before the first lists are used by the first sync', async () => {
  const { clock, backend, proxier } = harness();
  proxier.start();
  const next = new RecordingBackend();
  await proxier.pause();
  await proxier.replace(settingsWith(next));
  await proxier.syncReplaced();
  proxier.resume();
  listed(proxier);
  await clock.advance(SECOND);
  assert.deepEqual([backend.requests.length, next.requests.length], [0, 1]);
});

test('departed endpoints are part of syncs, and syncs are requested when they change without an event', async () => {
  const { clock, backend, proxier } = harness({ resetDeparted: 'tcp' });
  proxier.start();
  proxier.updateService(undefined, service('web'));
  proxier.updateSlice(slice('web', ['10.1.0.1', '10.1.0.2']), false);
  listed(proxier);
  await clock.advance(2 * SECOND);
  proxier.updateSlice(slice('web', ['10.1.0.1']), false);
  await clock.advance(SECOND / 2);
  assert.deepEqual(backend.departed, ['', '']);
  await clock.advance(2 * SECOND);
  assert.deepEqual(backend.departed, ['', '', '10.1.0.2:8080']);
  assert.deepEqual(backend.requests.at(-1)?.changed, []);
  await clock.advance(590 * SECOND);
  assert.equal(backend.departed.length, 3);
  await clock.advance(20 * SECOND);
  assert.deepEqual(backend.departed.slice(3), ['']);
  await clock.advance(600 * SECOND);
  assert.equal(backend.departed.length, 4);
  await proxier.stop();
});

test('a failed sync loses no departed endpoint; one that comes back is in service and off the list in one sync', async () => {
  const { clock, backend, proxier } = harness({ resetDeparted: 'tcp' });
  proxier.start();
  proxier.updateService(undefined, service('web'));
  proxier.updateSlice(slice('web', ['10.1.0.1']), false);
  listed(proxier);
  await clock.advance(2 * SECOND);
  proxier.updateSlice(slice('web', []), false);
  await clock.advance(SECOND / 2);
  backend.failure = new Error('no');
  await clock.advance(2 * SECOND);
  backend.failure = undefined;
  await clock.advance(30 * SECOND);
  assert.deepEqual(backend.departed.slice(-2), ['10.1.0.1:8080', '10.1.0.1:8080']);
  proxier.updateSlice(slice('web', ['10.1.0.1']), false);
  await clock.advance(2 * SECOND);
  assert.equal(backend.departed.at(-1), '');
  assert.deepEqual(backend.requests.at(-1)?.endpoints, { 'shop/web/TCP': ['10.1.0.1:8080'] });
  await proxier.stop();
});
