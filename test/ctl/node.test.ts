/** kube-proxyctl -N and the kubectl plugin: the proxy of another node, through kubectl. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import type { DiffReport, ServiceList, StatusReport } from '../../src/inspect/api.ts';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { kubectlCompletion, kubectlPlugin, kubeProxyctl, type Outcome, run } from '../program/run.ts';
import { Site } from '../program/started.ts';
import { eventuallyReported, printed } from './ctl.ts';
import { type FakeCluster, FakeKubectl, onePod } from './fake-cluster.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

describe('the kubectl plugin', { skip: skip ?? false }, () => {
  const kubectl = new FakeKubectl();
  let site: Site;
  let watcher: ChildProcess | undefined;

  before(async () => {
    site = await Site.open();
    site.api.put('services', apiService('web'));
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5']));
    await site.start(site.writeConfig({ metricsBindAddress: '127.0.0.1:10249' }));
    await eventuallyReported('the first sync', async () =>
      (JSON.parse(await printed('status -o json')) as StatusReport).families.every(({ syncs }) => syncs > 0),
    );
  });
  afterEach(async () => {
    watcher?.kill();
    await noneLeft().finally(() => kubectl.endAll());
    kubectl.meets(onePod);
  });
  after(async () => {
    await site.close();
    kubectl.close();
  });

  /** Waits until no kubectl runs; fails when one stays. */
  function noneLeft(): Promise<void> {
    return eventually('the end of kubectl', async () => kubectl.running().length === 0);
  }

  /** Runs the plugin as kubectl does, and returns what it prints. */
  async function plugin(args: string, code = 0): Promise<string> {
    const outcome = await run(kubectlPlugin, args.split(' '), { env: kubectl.env });
    assert.equal(outcome.code, code, `${args}\n${outcome.stdout}${outcome.stderr}`);
    return outcome.stdout;
  }

  /** Starts the plugin with --watch; it runs until the end of the test at the latest. */
  function watching(...args: readonly string[]) {
    const child = spawn(kubectlPlugin, ['-N', 'node-a', ...args, '--watch', '--interval', '20ms'], {
      env: { ...process.env, ...kubectl.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    watcher = child;
    return child;
  }

  /** Asks for the status in a cluster like this; returns the only line of the error. */
  async function complaint(cluster: FakeCluster, env: NodeJS.ProcessEnv = kubectl.env): Promise<string> {
    kubectl.meets(cluster);
    const { code, stdout, stderr }: Outcome = await run(kubectlPlugin, ['-N', 'node-a', 'status'], { env });
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, /^Error: .+\n$/);
    return stderr.slice('Error: '.length, -1);
  }

  it('finds the pod on the node, forwards a port of this machine, and ends kubectl', async () => {
    assert.match(await plugin('-N node-a status'), / in nftables mode on node node-a, /);
    const pods =
      'get pods -n kube-system -l k8s-app=kube-proxy --field-selector spec.nodeName=node-a -o json';
    const forward = 'port-forward -n kube-system pod/kube-proxy-1 :10249 --address 127.0.0.1';
    assert.deepEqual(
      kubectl.calls().map(({ args }) => args.join(' ')),
      [pods, forward],
    );
  });

  it('works with every command that asks a running proxy', async () => {
    assert.match(await plugin('services -N node-a shop/web'), /10\.96\.0\.1/);
    const { items } = JSON.parse(await plugin('services --on-node=node-a -o json')) as ServiceList;
    assert.equal(items.length, 1);
    assert.match(await plugin('-N node-a endpoints -n shop'), /10\.244\.0\.5:/);
    assert.match(await plugin('-N node-a explain node shop/web'), /^The kernel agrees$/m);
    assert.deepEqual((JSON.parse(await plugin('-N node-a diff -o json')) as DiffReport).items, []);
    assert.match(await plugin('-N node-a journal'), / Start /);
    assert.match(await plugin('-N node-a version'), /, on node node-a\n/);
    assert.match(
      await plugin('-N node-a top shop/web --interval 1ms'),
      / 10\.244\.0\.5:8080 +web-\S+ +za +100\.0 % /,
    );
    assert.match(await plugin('-N node-a flows'), /^CLIENT /);
    assert.match(await plugin(`-N node-a bundle -f ${join(site.directory, 'case.tar.gz')}`), /^Wrote /);
  });

  it('is kube-proxyctl with -N', async () => {
    const { code, stdout } = await run(kubeProxyctl, ['-N', 'node-a', 'status'], { env: kubectl.env });
    assert.equal(code, 0);
    assert.match(stdout, / on node node-a, /);
  });

  it('passes flags on to kubectl, and looks for pods where flags say', async () => {
    const where = '--proxy-namespace net --proxy-selector app=kp --proxy-port 10249';
    await plugin(`-N node-a status --kubeconfig /k --context blue --as eve ${where}`);
    const [pods, forward] = kubectl.calls().map(({ args }) => args.join(' '));
    assert.match(pods ?? '', /^get pods -n net -l app=kp .* --kubeconfig=\/k --context=blue --as=eve$/);
    assert.match(forward ?? '', /^port-forward -n net pod\/.* --kubeconfig=\/k --context=blue --as=eve$/);
  });

  it('reports a node without a pod of kube-proxy', async () => {
    assert.equal(
      await complaint({ pods: [] }),
      'there is no pod of kube-proxy on node "node-a" (namespace kube-system, selector k8s-app=kube-proxy)',
    );
  });

  it('reports a pod that does not run', async () => {
    const pods = [{ name: 'kube-proxy-1', phase: 'Pending' }];
    assert.match(
      await complaint({ pods }),
      /^no pod of kube-proxy runs on node .*: kube-proxy-1 is Pending$/,
    );
  });

  it('reports several pods on the node, and takes the one that is not about to end', async () => {
    const pods = [{ name: 'kube-proxy-1' }, { name: 'kube-proxy-2' }];
    assert.match(
      await complaint({ pods }),
      /^several pods match on node .*: kube-proxy-1, kube-proxy-2; --proxy-selector can select one$/,
    );
    kubectl.meets({ pods: [{ name: 'kube-proxy-1', isTerminating: true }, { name: 'kube-proxy-2' }] });
    await plugin('-N node-a status');
    assert.ok(kubectl.calls()[1]?.args.includes('pod/kube-proxy-2'));
  });

  it('names the right that the user lacks', async () => {
    assert.match(
      await complaint({ ...onePod, denied: 'list' }),
      /^the right to list pods in namespace kube-system is missing: pods is forbidden: User "eve" cannot list /,
    );
    assert.match(
      await complaint({ ...onePod, denied: 'portforward' }),
      /^the right to create pods\/portforward in namespace kube-system is missing: .* User "eve" cannot create /,
    );
  });

  it('reports a missing kubectl', async () => {
    const bare = join(kubectl.directory, 'bare');
    mkdirSync(bare);
    for (const tool of ['readlink', 'dirname', 'find']) symlinkSync(`/usr/bin/${tool}`, join(bare, tool));
    assert.equal(
      await complaint(onePod, { PATH: bare }),
      '-N reaches the node through kubectl, and there is no kubectl in the PATH',
    );
  });

  it('reports a forward that breaks while the proxy is asked', async () => {
    kubectl.breakOnce();
    assert.equal(
      await complaint(onePod),
      'cannot ask kube-proxy on node node-a: kubectl port-forward: lost connection to pod',
    );
  });

  it('says that no metrics server listens at the port', async () => {
    const args = ['-N', 'node-a', 'status', '--proxy-port', '1'];
    const { code, stderr } = await run(kubectlPlugin, args, { env: kubectl.env });
    assert.equal(code, 1);
    assert.match(stderr, /^Error: cannot ask kube-proxy on node node-a: nothing listens at port 1 of .*\n$/);
  });

  it('goes on watching through a new forward after the old one broke', async () => {
    const child = watching('services', '-o', 'json');
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    await eventually('the list', async () => stdout.includes('shop/web'));
    kubectl.breakOnce();
    await eventually('the break', async () => /lost connection to pod; trying again\n/.test(stderr));
    site.api.put('services', apiService('cart', 80, { clusterIP: '10.96.0.2' }));
    await eventually('the change', async () => stdout.includes('shop/cart'));
  });

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`leaves no kubectl behind when ${signal} ends it`, async () => {
      const child = watching('status');
      await once(child.stdout, 'data');
      assert.equal(kubectl.running().length, 1);
      child.kill(signal);
      const [code, by] = await once(child, 'exit');
      assert.deepEqual([code, by], [null, signal]);
      await noneLeft();
    });
  }

  it('leaves no kubectl behind when the reader of its output goes away', async () => {
    const command = `${kubectlPlugin} -N node-a status -w -o json --interval 1ms | head -n 0`;
    site.api.put('services', apiService('more', 80, { clusterIP: '10.96.0.3' }));
    await run('sh', ['-c', command], { env: kubectl.env });
    await noneLeft();
  });

  it('puts no rules of this machine into the bundle of a node that it cannot reach', async () => {
    kubectl.meets({ pods: [] });
    const text = await plugin(`-N node-a bundle -f ${join(site.directory, 'none.tar.gz')}`, 1);
    assert.match(text, /not collected: rules\/nft\.txt: there is no pod of kube-proxy on node "node-a"/);
  });

  it('completes nodes, and Services of the proxy of the node, for the shells of kubectl', async () => {
    const complete = async (...words: readonly string[]) =>
      (await run(kubectlCompletion, words, { env: kubectl.env })).stdout;
    assert.equal(await complete('-N', ''), 'node-a\n:4\n');
    assert.match(await complete('-N', 'node-a', 'services', 'shop/w'), /^shop\/web\n:4\n$/);
    assert.match(await complete('-N', 'node-a', 'stat'), /^status\t.*\n:4\n$/);
    assert.equal(await complete('--kubeconfig', ''), ':0\n');
    assert.equal(await complete('xyzzy'), ':4\n');
  });

  it('needs -N', async () => {
    for (const args of [['status'], ['status', '--kubeconfig', 'x']]) {
      const { code, stderr } = await run(kubectlPlugin, args, { env: kubectl.env });
      assert.equal(code, 1);
      assert.equal(stderr, 'Error: -N NODE is needed; see kubectl kube_proxy --help\n');
    }
  });
});
