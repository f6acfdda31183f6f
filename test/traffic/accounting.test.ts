import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, afterEach, before, describe, test } from 'node:test';
import type { TrafficReport } from '../../src/inspect/traffic-api.ts';
import { enterNamespace, labUnavailable, sh } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { eventuallyEqual } from '../eventually.ts';
import { kubeProxy, run } from '../program/run.ts';
import { inspect } from '../program/served-pages.ts';
import { Site, type StartedProxy } from '../program/started.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const METRICS = 'http://127.0.0.1:10249';

describe('the accounting of the connection table', { skip: skip ?? false }, () => {
  let site: Site;
  before(async () => {
    sh('ip addr add 192.0.2.1/32 dev lo');
    site = await Site.open();
    site.api.put('services', apiService('web'));
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5']));
  });
  afterEach(() => site.stopAll());
  after(() => site.close());

  async function start(): Promise<StartedProxy> {
    const proxy = await site.start(site.writeConfig({ clusterCIDR: '10.244.0.0/16' }));
    await proxy.serves(METRICS);
    return proxy;
  }

  async function killWhileItObserves(): Promise<void> {
    const proxy = await start();
    await inspect<TrafficReport>('traffic');
    assert.deepEqual(settings(), ['1', '1']);
    await proxy.kill();
    assert.deepEqual(settings(), ['1', '1']);
  }

  test('is off again at the next start after the process was killed', async () => {
    assert.deepEqual(settings(), ['0', '0']);
    await killWhileItObserves();
    await start();
    await eventuallyEqual('the settings are those from before', async () => settings(), ['0', '0']);
    assert.doesNotMatch(sh('nft list tables'), /kube-accounting/);
  });

  test('is off again after --cleanup, which tells it', async () => {
    await killWhileItObserves();
    const { code, stdout, stderr } = await run(kubeProxy, ['--cleanup']);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /net\.netfilter\.nf_conntrack_acct=1/);
    assert.deepEqual(settings(), ['0', '0']);
    assert.equal(sh('nft list tables'), '');
  });

  test('stays on where somebody else switched it on', async () => {
    sh('sysctl -qw net.netfilter.nf_conntrack_acct=1 net.netfilter.nf_conntrack_timestamp=1');
    await killWhileItObserves();
    await run(kubeProxy, ['--cleanup']);
    assert.deepEqual(settings(), ['1', '1']);
  });
});

function settings(): string[] {
  return ['nf_conntrack_acct', 'nf_conntrack_timestamp'].map((name) =>
    readFileSync(`/proc/sys/net/netfilter/${name}`, 'utf8').trim(),
  );
}
