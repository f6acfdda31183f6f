import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { run as command, enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiNode, apiService, apiSlice } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { kubeProxy, kubeProxyctl, run } from './run.ts';
import { Site } from './started.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const table = ['list', 'table', 'ip', 'kube-proxy'];
const isProgrammed = () => {
  try {
    return command('nft', ...table).includes('10.96.0.1 . tcp . 80');
  } catch {
    return false;
  }
};

describe('start, operation and end of the program', { skip: skip ?? false }, () => {
  let site: Site;

  before(async () => {
    site = await Site.open();
    site.api.put('services', apiService('web'));
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5']));
  });
  afterEach(() => site.stopAll());
  after(() => site.close());

  it('programs the kernel, and leaves the rules in place when it ends', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const proxy = await site.start(site.writeConfig());
      await eventually('the rules', isProgrammed);
      proxy.signal(signal);
      assert.deepEqual(await proxy.exited, { code: null, signal });
      assert.ok(isProgrammed());
    }
  });

  it('--cleanup removes the rules, and finds nothing to do the second time', async () => {
    for (let i = 0; i < 2; i++) {
      const { code, stderr } = await run(kubeProxy, ['--config', site.writeConfig(), '--cleanup']);
      assert.equal(code, 0, stderr);
      assert.throws(() => command('nft', ...table), /No such file/);
    }
  });

  it('--init-only checks everything and writes no rule', async () => {
    const { code, stderr } = await run(kubeProxy, ['--config', site.writeConfig(), '--init-only']);
    assert.equal(code, 0, stderr);
    assert.throws(() => command('nft', ...table), /No such file/);
  });

  it('runs in iptables mode when no mode is set, and warns that this will change', async () => {
    const isProgrammedInIptables = () =>
      command('iptables-save', '-t', 'nat').includes('shop/web:http cluster IP');
    const proxy = await site.start(site.writeConfig({ mode: '' }));
    await eventually('the rules', isProgrammedInIptables);
    assert.equal(await (await fetch('http://127.0.0.1:10249/proxyMode')).text(), 'iptables');
    await proxy.logs(/No proxy mode is configured, so iptables is used/);
    await site.stopAll();
    const { code, stderr } = await run(kubeProxy, ['--config', site.writeConfig(), '--cleanup']);
    assert.equal(code, 0, stderr);
    assert.ok(!isProgrammedInIptables());
  });

  it('--init-only in iptables mode sets sysctls and writes no rule', async () => {
    writeFileSync('/proc/sys/net/ipv4/conf/all/route_localnet', '0');
    command('nft', 'flush', 'ruleset');
    const config = site.writeConfig({ mode: 'iptables' });
    const { code, stderr } = await run(kubeProxy, ['--config', config, '--init-only']);
    assert.equal(code, 0, stderr);
    assert.equal(readFileSync('/proc/sys/net/ipv4/conf/all/route_localnet', 'utf8'), '1\n');
    assert.doesNotMatch(command('iptables-save'), /KUBE-/);
  });

  it('iptables mode without the iptables programs fails with that reason', async () => {
    const launcher = resolve(kubeProxy, '../launch.js');
    const args = [launcher, 'kube-proxy', '--config', site.writeConfig({ mode: 'iptables' })];
    const { code, stderr } = await run(process.execPath, args, { env: { PATH: site.directory } });
    assert.equal(code, 1);
    assert.match(stderr, /iptables is not available on this host: iptables is not installed/);
  });

  it('ends when the mode is changed in the configuration file', async () => {
    const config = site.writeConfig();
    const proxy = await site.start(config);
    writeFileSync(config, readFileSync(config, 'utf8').replace('nftables', 'iptables'));
    assert.equal((await proxy.exited).code, 1);
    assert.match(proxy.stderr, /content of the proxy server's configuration file was updated/);
  });

  it('takes up the new content when a ConfigMap volume is swapped under it', async () => {
    const first = site.writeConfig();
    mkdirSync(site.path('..v1'));
    mkdirSync(site.path('..v2'));
    writeFileSync(site.path('..v1/mounted.yaml'), readFileSync(first));
    writeFileSync(
      site.path('..v2/mounted.yaml'),
      `${readFileSync(first, 'utf8').trim().slice(0, -1)},"configSyncPeriod":"7m"}`,
    );
    symlinkSync('..v1', site.path('..data'));
    symlinkSync('..data/mounted.yaml', site.path('mounted.yaml'));
    const proxy = await site.start(site.path('mounted.yaml'));
    symlinkSync('..v2', site.path('..data_tmp'));
    renameSync(site.path('..data_tmp'), site.path('..data'));
    await proxy.logs(/"Configuration changed" generation=2 fields=\["configSyncPeriod"\]/);
  });

  it('keeps running on a configuration file that became unusable, and says so', async () => {
    const config = site.writeConfig();
    const proxy = await site.start(config);
    writeFileSync(config, '{"apiVersion": "kubeproxy');
    await proxy.logs(/Configuration file cannot be used, keeping the one in use/);
    assert.equal((await fetch('http://127.0.0.1:10256/livez')).status, 200);
  });

  it('retries when an address is taken, and ends at once when bind failures are fatal', async () => {
    const squatter = createServer().listen(10256, '::');
    await new Promise((done) => squatter.once('listening', done));
    try {
      const patient = site.spawn(['--config', site.writeConfig()]);
      await patient.logs(/Failed to serve HTTP; retrying/);
      await patient.kill();
      const hard = site.spawn(['--config', site.writeConfig({ bindAddressHardFail: true })]);
      assert.equal((await hard.exited).code, 1);
      assert.match(
        hard.stderr,
        /healthz server failed: failed to start proxy healthz on 0\.0\.0\.0:10256: listen tcp/,
      );
      const reasons = site.api.store.list('events').map(({ raw }) => raw.reason);
      assert.ok(reasons.includes('FailedToStartProxierHealthcheck'), reasons.join());
    } finally {
      squatter.close();
    }
  });

  it('ends when the node gets another address, and when it is deleted', async () => {
    const moved = await site.start(site.writeConfig());
    const raw = apiNode('node-a');
    site.api.put('nodes', { ...raw, status: { addresses: [{ type: 'InternalIP', address: '192.0.2.99' }] } });
    assert.equal((await moved.exited).code, 1);
    const deleted = await site.start(site.writeConfig());
    site.api.delete('nodes', '', 'node-a');
    assert.equal((await deleted.exited).code, 1);
    site.api.put('nodes', raw);
  });

  it('a tainted node is not eligible but the proxy is alive', async () => {
    await site.start(site.writeConfig());
    const raw = apiNode('node-a');
    const spec = {
      podCIDRs: ['10.244.0.0/24'],
      taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }],
    };
    site.api.put('nodes', { ...raw, spec });
    const statusOf = async (page: string) => (await fetch(`http://127.0.0.1:10256/${page}`)).status;
    await eventually('the node is not eligible', async () => (await statusOf('healthz')) === 503);
    assert.equal(await statusOf('livez'), 200);
    site.api.put('nodes', raw);
  });

  it('reports a wrong Service by name, in an event and a metric, and programs the others', async () => {
    const wrong = apiService('wrong', 80, { clusterIP: '10.96.0.9' });
    const spec = {
      ...(wrong.spec as object),
      loadBalancerSourceRanges: ['bogus'],
      externalIPs: ['300.1.2.3'],
    };
    site.api.put('services', { ...wrong, spec });
    site.api.put('endpointSlices', apiSlice('wrong', ['10.244.0.6']));
    const proxy = await site.start(site.writeConfig());
    await eventually(
      'both services',
      () => isProgrammed() && command('nft', ...table).includes('10.96.0.9 . tcp . 80'),
    );
    const isReported = () =>
      site.api.store.list('events').some(({ raw }) => raw.reason === 'FailedToProgram');
    await eventually('the event', isReported);
    await proxy.serves('http://127.0.0.1:10249/metrics');
    const metrics = await (await fetch('http://127.0.0.1:10249/metrics')).text();
    assert.match(
      metrics,
      /kubeproxy_ts_set_aside\{ip_family="IPv4",object="Service shop\/wrong",reason="invalid"\} 1/,
    );
    site.api.delete('services', 'shop', 'wrong');
  });

  it('logs JSON when asked to', async () => {
    const proxy = await site.start(site.writeConfig({ logging: { format: 'json' } }));
    await proxy.logs(/Serving HTTP/);
    for (const line of proxy.stderr.trim().split('\n')) {
      const record = JSON.parse(line);
      assert.equal(typeof record.ts, 'number');
      assert.equal(typeof record.msg, 'string');
    }
  });

  it('runs on manifests without a cluster, and follows their changes', async () => {
    mkdirSync(site.path('manifests'));
    const list = (address: string) =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'List',
        items: [
          { apiVersion: 'v1', kind: 'Service', ...apiService('web') },
          { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ...apiSlice('web', [address]) },
        ],
      });
    writeFileSync(site.path('manifests/shop.json'), list('10.244.0.7'));
    // A separate server: late requests of other tests' programs may still arrive at the shared one.
    const unasked = await Site.open();
    const clientConnection = { kubeconfig: unasked.path('kubeconfig') };
    await site.start(site.writeConfig({ clientConnection }), ['--manifests', site.path('manifests')]);
    await eventually('the endpoint', () => command('nft', ...table).includes('10.244.0.7'));
    writeFileSync(site.path('manifests/shop.json'), list('10.244.0.8'));
    await eventually('the new endpoint', () => command('nft', ...table).includes('10.244.0.8'));
    assert.deepEqual(unasked.api.requests, []);
    await unasked.close();
  });
});

describe('the commands', () => {
  it('run from any directory, with any node on the PATH', async () => {
    for (const [program, expected] of [
      [kubeProxy, /^Kubernetes v1\.37\.0\n$/],
      [kubeProxyctl, /^kube-proxyctl of kube-proxy-ts \d+\.\d+\.\d+, .*, for Kubernetes v1\.37\.0\n$/],
    ] as const) {
      const { code, stdout } = await run(program, ['--version'], {
        cwd: '/',
        env: { PATH: '/usr/bin:/bin' },
      });
      assert.match(stdout, expected);
      assert.equal(code, 0);
    }
  });

  it('--write-config-to writes the default configuration byte for byte', async () => {
    const file = join(tmpdir(), `kpt-default-${process.pid}.yaml`);
    const { code, stderr } = await run(kubeProxy, ['--write-config-to', file]);
    assert.equal(code, 0, stderr);
    const recorded = resolve(import.meta.dirname, '../vectors/cli/default-config.yaml');
    assert.equal(readFileSync(file, 'utf8'), readFileSync(recorded, 'utf8'));
    rmSync(file);
  });

  it('usage errors exit 1 and print the error and one hint', async () => {
    for (const [argument, message] of [
      ['--no-such', 'unknown flag: --no-such'],
      ['now', '"kube-proxy" does not take any arguments, got ["now"]'],
    ] as const) {
      assert.deepEqual(await run(kubeProxy, [argument]), {
        code: 1,
        signal: null,
        stdout: '',
        stderr: `Error: ${message}\nSee 'kube-proxy --help' for usage.\n`,
      });
    }
  });
});
