/** Tests of the images without a container engine: the program runs in their root file systems. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { imageStages, RootFileSystems, settingsOf } from '../../scripts/image/rootfs.ts';
import { builtProduct } from '../../scripts/product.ts';
import { productText } from '../../src/lib/product.ts';
import { enterNamespace, hasProgram, labUnavailable, ownNamespace, run } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { flavourUnavailable } from '../iptables/flavours.ts';
import { type Confinement, Container } from './container.ts';
import { assertAnswered, becomeNode, DemoPods, webAddress } from './demo-node.ts';

const project = resolve(import.meta.dirname, '../..');
const rootsVariable = 'KPT_IMAGE_ROOTS';
const NONROOT = 65_532;
const needed = ['capsh', 'unshare', 'dpkg-query', 'nft', 'npm'];
const skip =
  labUnavailable() ??
  needed.filter((name) => !hasProgram(name, '--version')).map((name) => `needs the program ${name}`)[0] ??
  flavourUnavailable('legacy') ??
  false;

if (skip === false && ownNamespace() === undefined) {
  // Outside the namespace, because npm may have to fetch packages and cannot do that inside.
  const systems = new RootFileSystems();
  process.on('exit', () => systems.remove());
  const roots = Object.fromEntries(['nftables', 'full'].map((name) => [name, systems.make(name)]));
  process.env[rootsVariable] = JSON.stringify(roots);
}
if (skip === false) enterNamespace(import.meta.url);

type Target = 'nftables' | 'full';

describe('the images', { skip }, () => {
  const roots = JSON.parse(process.env[rootsVariable] ?? '{}') as Record<Target, string>;
  const files = mkdtempSync(join(tmpdir(), 'kpt-image-files-'));
  const pods = new DemoPods();
  const running: Container[] = [];

  before(async () => {
    becomeNode();
    await pods.start();
    cpSync(join(project, 'examples/shop'), join(files, 'manifests'), { recursive: true });
    run('chmod', '-R', 'a+rX', files);
  });
  afterEach(async () => {
    for (const container of running.splice(0)) await container.kill();
    run('nft', 'flush', 'ruleset');
    for (const table of ['nat', 'filter', 'mangle']) {
      run('sh', '-c', `printf '*${table}\\nCOMMIT\\n' | iptables-legacy-restore`);
    }
  });
  after(() => {
    pods.stop();
    rmSync(files, { recursive: true });
  });

  /** Starts the program as kubeadm's DaemonSet does, on manifests. */
  function start(
    target: Target,
    mode: string,
    confinement?: Confinement,
    ...flags: readonly string[]
  ): Container {
    const stage = imageStages().find(({ name }) => name === target);
    assert.ok(stage);
    writeFileSync(join(files, 'config.conf'), configOf(mode));
    const args = [
      '--config=/var/lib/kube-proxy/config.conf',
      '--hostname-override=node-1',
      '--manifests=/var/lib/kube-proxy/manifests',
      ...flags,
    ];
    const container = new Container(roots[target], settingsOf(stage), files, args, confinement);
    running.push(container);
    return container;
  }

  /** Waits until a program ends by itself. */
  async function ended(container: Container): Promise<{ code: number | null; log: string }> {
    const timer = setTimeout(() => container.signal('SIGKILL'), paced(20_000));
    return container.ended.finally(() => clearTimeout(timer));
  }

  function assertCapabilities(container: Container, mask: number): void {
    const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(container.status())?.[1];
    assert.equal(Number.parseInt(effective ?? '', 16), mask);
  }

  test('the small image has no shell and no program but its own', () => {
    const programs = globSync('{,usr/,usr/local/}{bin,sbin}/*', { cwd: roots.nftables });
    assert.deepEqual(programs.map((path) => path.split('/').at(-1)).sort(), [
      'kube-proxy',
      'kube-proxyctl',
      'node',
    ]);
  });

  test('the full image has both flavours of iptables', () => {
    const programs = globSync('usr/local/lib/iptables/{nft,legacy}/*', { cwd: roots.full });
    assert.equal(programs.length, 12);
    for (const program of programs) {
      const link = run('readlink', join(roots.full, program)).trim();
      assert.ok(existsSync(join(roots.full, link)), link);
    }
  });

  test('--init-only does what needs all privileges; nftables mode then runs with CAP_NET_ADMIN', async () => {
    const early = start('nftables', 'nftables', { capabilities: ['net_admin'] });
    assert.match(
      (await ended(early)).log,
      /can't set sysctl net\/netfilter\/nf_conntrack_tcp_timeout_close_wait/,
    );
    const { code, log } = await ended(start('nftables', 'nftables', undefined, '--init-only'));
    assert.equal(code, 0, log);
    assert.doesNotMatch(run('nft', 'list', 'tables'), /kube-proxy/);
    const container = start('nftables', 'nftables', { capabilities: ['net_admin'] });
    await assertAnswered(webAddress, container);
    assertCapabilities(container, 1 << 12);
  });

  test('nftables mode runs as a user other than root', async () => {
    await ended(start('nftables', 'nftables', undefined, '--init-only'));
    const container = start('nftables', 'nftables', { capabilities: ['net_admin'], uid: NONROOT });
    await assertAnswered(webAddress, container);
    assertCapabilities(container, 1 << 12);
    assert.match(container.status(), new RegExp(`^Uid:\\s+${NONROOT}\\s`, 'm'));
    const text = productText(builtProduct(project)).replace('+', '\\+');
    assert.match(container.log, new RegExp(`"Version info" .*product="${text}"`));
  });

  test('nftables mode without any privilege names the privilege it lacks', async () => {
    await ended(start('nftables', 'nftables', undefined, '--init-only'));
    const { code, log } = await ended(start('nftables', 'nftables', { capabilities: [] }));
    assert.equal(code, 1);
    assert.match(log, /"command failed" err=".*nftables.*EPERM.* \(CAP_NET_ADMIN is missing\)"/);
  });

  test('userspace mode runs without any privilege, at loopback addresses', async () => {
    const container = start('nftables', 'userspace', { capabilities: [], uid: NONROOT });
    await assertAnswered('127.0.0.1:8080', container);
    assertCapabilities(container, 0);
  });

  test('a signal ends the program, and leaves its rules', async () => {
    const container = start('nftables', 'nftables');
    await assertAnswered(webAddress, container);
    container.signal('SIGTERM');
    // As process 1 it must itself exit with the code that a shell would report.
    assert.equal((await ended(container)).code, 143);
    assert.match(run('nft', 'list', 'tables'), /table ip kube-proxy\n/);
  });

  test('iptables mode on nf_tables runs with CAP_NET_ADMIN', async () => {
    await ended(start('full', 'iptables', undefined, '--init-only'));
    const container = start('full', 'iptables', { capabilities: ['net_admin'] });
    await assertAnswered(webAddress, container);
    assert.match(run('iptables-nft-save'), /^:KUBE-SERVICES /m);
    assert.doesNotMatch(run('iptables-legacy-save'), /KUBE-SERVICES/);
  });

  const chain = (kind: string, name: string) => run(`iptables-${kind}`, '-t', 'mangle', '-N', name);
  const signs = {
    'the hint of the kubelet': () => chain('legacy', 'KUBE-IPTABLES-HINT'),
    'the canary of an older kubelet': () => chain('legacy', 'KUBE-KUBELET-CANARY'),
    'the number of rules when there is no kubelet': () =>
      run('iptables-legacy', '-A', 'INPUT', '-j', 'ACCEPT'),
  };
  for (const [sign, make] of Object.entries(signs)) {
    test(`iptables mode detects x_tables by ${sign}, and runs there with CAP_NET_ADMIN and CAP_NET_RAW`, async () => {
      make();
      await ended(start('full', 'iptables', undefined, '--init-only'));
      const container = start('full', 'iptables', { capabilities: ['net_admin', 'net_raw'] });
      await assertAnswered(webAddress, container);
      assert.match(run('iptables-legacy-save'), /^:KUBE-SERVICES /m);
      assert.doesNotMatch(run('iptables-nft-save'), /KUBE-SERVICES/);
    });
  }

  test('chains of the kubelet on nf_tables have precedence over rules of other programs on x_tables', async () => {
    run('iptables-legacy', '-A', 'INPUT', '-j', 'ACCEPT');
    chain('nft', 'KUBE-IPTABLES-HINT');
    const container = start('full', 'iptables');
    await assertAnswered(webAddress, container);
    assert.match(run('iptables-nft-save'), /^:KUBE-SERVICES /m);
  });
});

function configOf(mode: string): string {
  return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: ${mode}
bindAddress: 192.0.2.1
conntrack:
  # The size of the table is a setting of the whole machine; this one is of the network namespace.
  maxPerCore: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 1234s
`;
}
