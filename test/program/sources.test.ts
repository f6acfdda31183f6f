/** Where a running program gets its objects from: what it asks an API server for, and what it does when that fails. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { StatusReport, WatchReport } from '../../src/inspect/api.ts';
import type { ApiServerOptions } from '../cluster/apiserver/server.ts';
import { run as command, enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiService, apiServiceCIDR, apiSlice } from '../cluster/objects.ts';
import { eventually, eventuallyEqual, type Patience } from '../eventually.ts';
import { kubeProxyctl, run } from './run.ts';
import { inspect, METRICS_URL } from './served-pages.ts';
import { Site } from './started.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const isProgrammed = (frontend: string) => {
  try {
    return command('nft', 'list', 'table', 'ip', 'kube-proxy').includes(frontend);
  } catch {
    return false;
  }
};

/** An API server with one Service, and the program on it. */
class Started implements AsyncDisposable {
  readonly site: Site;

  private constructor(site: Site) {
    this.site = site;
  }

  static async on(server: ApiServerOptions, settings: Record<string, unknown> = {}): Promise<Started> {
    const site = await Site.open(server);
    site.api.put('services', apiService('web'));
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5']));
    site.api.put('serviceCIDRs', apiServiceCIDR('kubernetes', '10.96.0.0/12'));
    const started = new Started(site);
    try {
      await site.start(site.writeConfig(settings));
      await eventually('the rules', () => isProgrammed('10.96.0.1 . tcp . 80'));
      return started;
    } catch (error) {
      await started[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** What the program asked of each resource, in order. */
  requests(): Record<string, string[]> {
    const kinds: Record<string, string[]> = {};
    for (const { method, path, query } of this.site.api.requests) {
      if (method !== 'GET') continue;
      const resource = path.slice(path.lastIndexOf('/') + 1);
      const kind = query.has('watch') ? 'watch' : 'pages';
      kinds[resource] ??= [];
      kinds[resource].push(query.has('sendInitialEvents') ? 'streamed list' : kind);
    }
    return kinds;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site.close();
    command('nft', 'flush', 'ruleset');
  }
}

const streaming = { featureGates: { WatchListClient: true } };
const resources = ['nodes', 'services', 'endpointslices', 'servicecidrs'];
const ofEach = (requests: string[]) => Object.fromEntries(resources.map((resource) => [resource, requests]));

describe('lists from the API server', { skip: skip ?? false }, () => {
  it('come in pages when the server accepts a streamed list and then sends an error', async () => {
    await using started = await Started.on({ streamingLists: 'broken' }, streaming);
    assert.equal((await fetch('http://127.0.0.1:10256/healthz')).status, 200);
    await eventually('a watch of every resource', () => started.site.api.watches().length === 4);
    assert.deepEqual(started.requests(), ofEach(['streamed list', 'pages', 'watch']));
    started.site.api.put('services', apiService('web', 81));
    await eventually('the change', () => isProgrammed('10.96.0.1 . tcp . 81'));
  });

  it('are streamed if the configuration turns the feature gate WatchListClient on', async () => {
    await using started = await Started.on({}, streaming);
    assert.deepEqual(started.requests(), ofEach(['streamed list']));
  });

  it('come in pages otherwise', async () => {
    await using started = await Started.on({});
    await eventually('a watch of every resource', () => started.site.api.watches().length === 4);
    assert.deepEqual(started.requests(), ofEach(['pages', 'watch']));
  });
});

/** Waits until `status` has these kinds of problems, and checks that all who ask get the same answer. */
async function eventuallyWrong(kinds: readonly string[], patience: Patience = {}): Promise<StatusReport> {
  let report = await inspect<StatusReport>('status');
  const isWrong = async () => {
    report = await inspect<StatusReport>('status');
    assert.deepEqual(
      report.problems.map(({ kind }) => kind),
      kinds,
    );
    return true;
  };
  await eventually(`problems [${kinds}]`, isWrong, patience);
  assert.equal(report.state, kinds.length === 0 ? 'healthy' : 'degraded');
  // None of them is an outage: a load balancer must not drain the node.
  assert.equal((await fetch('http://127.0.0.1:10256/healthz')).status, 200);
  return report;
}

async function statusText(code: number): Promise<string> {
  const outcome = await run(kubeProxyctl, ['status']);
  assert.equal(outcome.code, code, outcome.stdout + outcome.stderr);
  return outcome.stdout;
}

describe('status of a program on an API server', { skip: skip ?? false }, () => {
  let started: Started;
  const configPath = () => started.site.path('config.yaml');

  before(async () => {
    started = await Started.on({});
  });
  after(() => started[Symbol.asyncDispose]());

  async function eventuallyAllWatches(state: WatchReport['state']): Promise<void> {
    const states = async () => {
      const { sources } = await inspect<StatusReport>('status');
      return Object.fromEntries(sources.watches.map((watch) => [watch.resource, watch.state]));
    };
    const wanted = Object.fromEntries(resources.map((resource) => [resource, state]));
    await eventuallyEqual(`all watches ${state}`, states, wanted);
  }

  it('shows every watch, and the configuration file that is in use', async () => {
    await eventuallyAllWatches('connected');
    const { sources, configuration } = await eventuallyWrong([]);
    assert.equal(sources.location, started.site.api.url);
    for (const { lastEvent, reason } of sources.watches) assert.ok(lastEvent !== null && reason === null);
    assert.equal(configuration?.file, configPath());
    assert.equal(configuration.sha256, hash('sha256', readFileSync(configPath())));
    assert.equal(configuration.onDisk.state, 'InUse');
    const text = await statusText(0);
    assert.match(text, /^endpointslices +connected for \S+ +\S+ ago$/m);
    assert.match(text, /the file on disk is the one in use/);
  });

  it('tells that the configuration file has become unusable, until it is restored', async () => {
    const good = readFileSync(configPath());
    writeFileSync(configPath(), '{"apiVersion": "kubeproxy');
    const { configuration } = await eventuallyWrong(['ConfigFileUnusable']);
    assert.equal(configuration?.onDisk.state, 'Unusable');
    assert.equal(configuration.sha256, hash('sha256', good));
    assert.match(await statusText(2), /cannot be used, so a restart would fail: .*\n/);
    writeFileSync(configPath(), good);
    await eventuallyWrong([]);
  });

  it('tells that the API server is gone, since when and why, until it is back', async () => {
    const { api } = started.site;
    const connected = async () => (await fetch(METRICS_URL)).text();
    assert.match(await connected(), /kubeproxy_ts_watch_connected\{resource="services"\} 1/);
    for (let i = 0; i < 1000; i++) api.faults.next({ kind: 'reset' });
    const goneAt = Date.now();
    api.disconnect();
    await eventuallyAllWatches('broken');
    const { sources, problems } = await eventuallyWrong(['WatchBroken']);
    for (const { since, reason } of sources.watches) {
      assert.ok(Math.abs(Date.parse(since) - goneAt) < 10_000, since);
      assert.match(reason ?? '', /socket hang up|ECONNRESET/);
    }
    assert.match(
      problems[0]?.text ?? '',
      /sends no changes of nodes, services, endpointslices, servicecidrs/,
    );
    assert.match(await statusText(2), /^services +stale for \S+ +\S+ ago +\S/m);
    const metrics = await connected();
    assert.match(metrics, /kubeproxy_ts_watch_connected\{resource="services"\} 0/);
    assert.match(metrics, /kubeproxy_ts_watch_stale_seconds\{resource="services"\} [1-9]/);
    assert.match(metrics, /kubeproxy_ts_problems\{kind="WatchBroken"\} 1/);
    api.faults.clear();
    await eventuallyWrong([], { withinMs: 90_000 });
  });
});

describe('status of a program on manifests', { skip: skip ?? false }, () => {
  it('tells which files cannot be used, by path and reason, until they can', async () => {
    const site = await Site.open();
    try {
      mkdirSync(site.path('manifests'));
      const good = JSON.stringify({ apiVersion: 'v1', kind: 'Service', ...apiService('web') });
      writeFileSync(site.path('manifests/web.json'), good);
      await site.start(site.writeConfig(), [
        '--manifests',
        site.path('manifests'),
        '--hostname-override=node-a',
      ]);
      await eventually('the rules', () => isProgrammed('10.96.0.1 . tcp . 80'));
      const { sources } = await eventuallyWrong([]);
      assert.deepEqual([sources.kind, sources.errors], ['Manifests', []]);
      mkdirSync(site.path('manifests/folder.yaml'));
      writeFileSync(site.path('manifests/web.json'), '{');
      const broken = await eventuallyWrong(['ManifestUnreadable', 'ManifestUnreadable']);
      assert.deepEqual(
        broken.sources.errors.map(({ path }) => path),
        [site.path('manifests/folder.yaml'), site.path('manifests/web.json')],
      );
      assert.equal(broken.sources.errors[0]?.reason, 'not a regular file');
      assert.match(await statusText(2), /manifests\/folder\.yaml: not a regular file \(for /);
      rmdirSync(site.path('manifests/folder.yaml'));
      writeFileSync(site.path('manifests/web.json'), good);
      await eventuallyWrong([]);
    } finally {
      await site.close();
      command('nft', 'flush', 'ruleset');
    }
  });
});
