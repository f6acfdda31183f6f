import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { RatesReport } from '../../src/ctl/traffic-rates.ts';
import type { ExplanationReport, StatusReport } from '../../src/inspect/api.ts';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { kubeProxy } from '../program/run.ts';
import { complaint, ctl, eventuallyReported, printed } from './ctl.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const NOBODY = 65_534;
const shop = resolve(import.meta.dirname, '../../examples/shop');

describe('kube-proxyctl and a proxy in userspace mode without privileges', { skip: skip ?? false }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-ctl-'));
  const pods = createServer((socket) => socket.end('here'));
  let proxy: ChildProcess;

  before(async () => {
    await once(pods.listen(9376, '127.0.1.12'), 'listening');
    cpSync(shop, directory, { recursive: true });
    const args = ['--proxy-mode=userspace', `--manifests=${shop}`, '--hostname-override=node-1'];
    proxy = spawn(kubeProxy, [...args, '--conntrack-max-per-core=0'], {
      stdio: 'ignore',
      env: { ...process.env, HOME: directory },
      uid: NOBODY,
      gid: NOBODY,
    });
    await eventuallyReported('the first sync', async () => {
      const { code, stdout } = await ctl('status', '-o', 'json');
      return code === 0 && (JSON.parse(stdout) as StatusReport).families.every(({ syncs }) => syncs > 0);
    });
  });
  after(async () => {
    proxy.kill('SIGKILL');
    pods.close();
    rmSync(directory, { recursive: true });
  });

  it('status, services and endpoints show the service', async () => {
    assert.match(await printed('status'), / in userspace mode on node node-1, .*: healthy\n/);
    assert.match(await printed('services cart'), /affinity +ClientIP for 3h\n/);
    assert.match(await printed('endpoints cart'), /127\.0\.1\.12:9376 +- +- +ready /);
  });

  it('services lists the addresses that serve, and no cluster IP as if it were reachable', async () => {
    const table = await printed('services');
    assert.match(table, /^SERVICE PORT +FAMILY +REACHABLE AT +INSIDE +OUTSIDE\n/);
    assert.match(table, /^shop\/cart\/TCP +IPv4 +127\.0\.0\.1:8090,0\.0\.0\.0:30080 /m);
    assert.match(
      table,
      /\nPackets to cluster IPs .* are not captured: not running as root \(CAP_NET_ADMIN is needed\)\./,
    );
    assert.doesNotMatch(table, /10\.96\./);
    const [served = ''] = /127\.0\.0\.1:\d+/.exec(table) ?? [];
    const [host = '', port] = served.split(':');
    const socket = connect({ host, port: Number(port) });
    await once(socket.resume(), 'close');
    const details = await printed('services web');
    assert.match(details, /cluster IP +10\.96\.0\.10:8080, not captured: not running as root/);
    assert.match(details, /reachable at +127\.0\.0\.1:8080 \(for 10\.96\.0\.10:8080\/TCP\)\n/);
  });

  it('explain says of a cluster IP that it is not captured and where it is served, without a warning', async () => {
    const text = await printed('explain node 10.96.0.10:8080');
    assert.match(text, /\nIgnored: /);
    assert.match(
      text,
      /not captured: not running as root .*\n.*It is served at 127\.0\.0\.1:8080 instead\.\n/,
    );
    assert.match(text, /\nThe kernel agrees\n/);
    assert.match(
      text,
      /\nRules of other programs were not looked at: reading nf_tables needs CAP_NET_ADMIN\n$/,
    );
    assert.match(await printed('explain node 10.96.0.99:8080'), /\nThe kernel agrees\n/);
    const served = await printed('explain node 127.0.0.1:8080');
    assert.match(served, /\nForwarded to one of 3 endpoints of shop\/web\/TCP\.\n/);
    assert.match(served, /kube-proxy listens at 127\.0\.0\.1:8080 for cluster IP 10\.96\.0\.10:8080\/TCP/);
    assert.match(served, /\nThe kernel agrees\n/);
  });

  it('explain agrees with the forwarder about its listeners', async () => {
    const args = 'explain node 127.0.0.1:30080';
    const report = JSON.parse(await printed(`${args} -o json`)) as ExplanationReport;
    assert.equal(report.kernelUnknown, null);
    assert.equal(report.planned.service, 'shop/cart/TCP');
    assert.deepEqual(report.differences, []);
  });

  it('diff finds nothing, and top counts the traffic', async () => {
    await printed('diff');
    const cart = async () =>
      JSON.parse(await printed('top shop/cart --by service --interval 1ms -o json')) as RatesReport;
    const opened = async () => (await cart()).items[0]?.opened ?? 0;
    const before = await opened();
    for (let i = 0; i < 3; i++) {
      const socket = connect({ host: '127.0.0.1', port: 30_080 });
      await once(socket.resume(), 'close');
    }
    await eventuallyReported('three connections are counted', async () => (await opened()) === before + 3);
    const text = await printed('top shop/cart --interval 1ms --count 2');
    assert.equal(text.match(/^SERVICE PORT/gm)?.length, 2);
    assert.match(text, /^shop\/cart\/TCP +IPv4 +127\.0\.1\.12:9376 +- +- +50\.0 % /m);
  });

  it('flows and top say what the kernel does not let the proxy see', async () => {
    for (const args of ['flows', 'flows -w', 'top --by client']) {
      assert.match(await complaint(args), /only with CAP_NET_ADMIN, which kube-proxy does not have/, args);
    }
    assert.doesNotMatch(await printed('top --interval 1ms'), /not counted/);
  });
});
