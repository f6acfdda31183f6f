import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { enterNamespace, labUnavailable, run as sh } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { kubeProxy, type Outcome, run } from '../program/run.ts';
import { Site } from '../program/started.ts';
import { ctl, eventuallyReported } from './ctl.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

describe('kube-proxy --dry-run', { skip: skip ?? false }, () => {
  let site: Site;
  let config: string;

  before(async () => {
    site = await Site.open();
    site.api.put('services', apiService('web'));
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5']));
    config = site.writeConfig({ conntrack: { tcpEstablishedTimeout: '77s', maxPerCore: 0 } });
  });
  after(() => site.close());

  function dryRun(...args: readonly string[]): Promise<Outcome> {
    return run(kubeProxy, ['--config', config, '--dry-run', ...args]);
  }

  it('before a start prints all that would be written, and writes nothing', async () => {
    const { code, stdout, stderr } = await dryRun();
    assert.equal(code, 2, stderr);
    assert.match(stdout, /^nftables mode on node node-a: what a start would change\n/);
    assert.match(stdout, /^IPv4, 1 service port: \d+ changes$/m);
    assert.match(stdout, /^ {2}shop\/web:http\/TCP\n {4}\+ element .*10\.96\.0\.1/m);
    assert.equal(sh('nft', 'list', 'ruleset'), '');
    const timeout = readFileSync('/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established', 'utf8');
    assert.notEqual(timeout.trim(), '77');
    assert.ok(site.api.requests.every(({ method }) => method === 'GET'));
  });

  it('without CAP_NET_ADMIN fails and says what is missing', async () => {
    const drop = ['--bounding-set=-net_admin', '--inh-caps=-net_admin', kubeProxy];
    const { code, stdout, stderr } = await run('setpriv', [...drop, '--config', config, '--dry-run']);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /"command failed" err=".* \(CAP_NET_ADMIN is missing; run it as root\)"\n$/);
  });

  it('reports no change while a proxy is running', async () => {
    await site.start(config);
    await eventuallyReported('the first sync', async () => (await ctl('diff')).code === 0);
    const { code, stdout, stderr } = await dryRun();
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /^IPv4, 1 service port: nothing to change$/m);
    assert.match(stdout, /^IPv6, 0 service ports: nothing to change$/m);
  });

  it('reports a change of the cluster with its service, and objects that cannot be programmed', async () => {
    await site.stopAll();
    const before = sh('nft', 'list', 'ruleset');
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.6']));
    const { spec, ...rest } = apiService('odd', 80, { clusterIP: '10.96.0.3' });
    site.api.put('services', { ...rest, spec: { ...(spec as object), externalIPs: ['bogus'] } });
    const { code, stdout, stderr } = await dryRun();
    assert.equal(code, 2, stderr);
    assert.match(
      stdout,
      /^ {2}shop\/web:http\/TCP\n {4}~ element .*\n {8}is: .*10\.244\.0\.5.*\n {8}should: .*10\.244\.0\.6/m,
    );
    assert.match(stdout, /\nNot \(fully\) programmed\n {2}Service shop\/odd: .*"bogus"/);
    assert.equal(sh('nft', 'list', 'ruleset'), before);
  });

  it('works on manifests, and ends with 1 when they cannot be read', async () => {
    const missing = await dryRun('--manifests', site.path('nowhere'));
    assert.deepEqual([missing.code, missing.stdout], [1, '']);
    assert.match(missing.stderr, /cannot read manifests/);
    const { code, stdout } = await dryRun(
      '--manifests',
      new URL('../../examples/shop', import.meta.url).pathname,
    );
    assert.equal(code, 2);
    assert.match(stdout, /^ {2}shop\/cart\/TCP$/m);
  });
});
