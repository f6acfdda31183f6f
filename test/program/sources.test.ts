/** Where a running program gets its objects from: what it asks an API server for, and what it does when that fails. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApiServerOptions } from '../cluster/apiserver/server.ts';
import { run as command, enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiService, apiServiceCIDR, apiSlice } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
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

const resources = ['nodes', 'services', 'endpointslices', 'servicecidrs'];
const ofEach = (requests: string[]) => Object.fromEntries(resources.map((resource) => [resource, requests]));

describe('lists from the API server', { skip: skip ?? false }, () => {
  it('come in pages when the server accepts a streamed list and then sends an error', async () => {
    await using started = await Started.on({ streamingLists: 'broken' });
    assert.equal((await fetch('http://127.0.0.1:10256/healthz')).status, 200);
    await eventually('a watch of every resource', () => started.site.api.watches().length === 4);
    assert.deepEqual(started.requests(), ofEach(['streamed list', 'pages', 'watch']));
    started.site.api.put('services', apiService('web', 81));
    await eventually('the change', () => isProgrammed('10.96.0.1 . tcp . 81'));
  });

  it('are streamed from a server that can do so', async () => {
    await using started = await Started.on({}, { featureGates: { WatchListClient: true } });
    assert.deepEqual(started.requests(), ofEach(['streamed list']));
  });

  it('are never streamed with the feature gate WatchListClient off', async () => {
    await using started = await Started.on({}, { featureGates: { WatchListClient: false } });
    await eventually('a watch of every resource', () => started.site.api.watches().length === 4);
    assert.deepEqual(started.requests(), ofEach(['pages', 'watch']));
  });
});
