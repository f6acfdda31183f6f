import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { apiServer, nodeAddress, podNetwork } from './addresses.ts';
import type { ClusterMode, WhichProxy } from './arguments.ts';
import { ourImage } from './images/our-image.ts';
import { upstreamImage } from './images/test-images.ts';
import type { Kubectl } from './kubectl.ts';
import type { Machine } from './machine.ts';
import { untilSuccessful } from './processes.ts';

const manifests = resolve(import.meta.dirname, '../../deploy/kustomize');
const daemonSet = 'daemonset/kube-proxy';
const overlays: Readonly<Record<ClusterMode, string>> = {
  nftables: 'overlays/nftables',
  iptables: 'base',
  ipvs: 'overlays/ipvs',
  // There is no overlay for this mode: an operator sets it in config.conf.
  userspace: 'base',
};

export const imageOf: Readonly<Record<WhichProxy, string>> = { ours: ourImage, upstream: upstreamImage };

export interface Deployment {
  readonly which: WhichProxy;
  readonly mode: ClusterMode;
  /** Another overlay of deploy/kustomize than that of the mode. */
  readonly overlay?: string;
  /** Further lines of the configuration file. */
  readonly configuration?: readonly string[];
}

/** kube-proxy on all nodes, deployed with deploy/kustomize as deploy/README.md describes. */
export class DeployedProxy {
  readonly #kubectl: Kubectl;
  readonly #machines: readonly Machine[];
  readonly #directory: string;

  /** `directory` is for the operator's copy of the manifests. */
  constructor(kubectl: Kubectl, machines: readonly Machine[], directory: string) {
    this.#kubectl = kubectl;
    this.#machines = machines;
    this.#directory = directory;
  }

  /** Applies the manifests and waits until the proxies of all nodes run in the mode. */
  async deploy(deployment: Deployment): Promise<void> {
    this.#writeManifests(deployment);
    const before = await this.#kubectl.run('--namespace=kube-system', 'get', daemonSet, '--ignore-not-found');
    await this.#kubectl.run('apply', '--kustomize', this.#directory);
    // A change of the ConfigMap alone starts no new pods.
    if (before !== '') await this.restart();
    else await this.rolledOut();
    await this.assertMode(deployment.mode);
  }

  /** Starts a new pod on every node, one after the other. */
  async restart(): Promise<void> {
    await this.#kubectl.run('--namespace=kube-system', 'rollout', 'restart', daemonSet);
    await this.rolledOut();
  }

  async setImage(which: WhichProxy): Promise<void> {
    await this.#kubectl.run(
      '--namespace=kube-system',
      'set',
      'image',
      daemonSet,
      `kube-proxy=${imageOf[which]}`,
    );
    await this.rolledOut();
  }

  async rolledOut(): Promise<void> {
    await this.#kubectl.run('--namespace=kube-system', 'rollout', 'status', daemonSet, '--timeout=300s');
    await Promise.all(
      this.#machines.map(({ node, name }) =>
        untilSuccessful(`health of kube-proxy on ${name}`, 120, async () => {
          const response = await fetch(`http://${nodeAddress(node).v4}:10256/healthz`);
          if (!response.ok) throw new Error(`status ${response.status}`);
        }),
      ),
    );
  }

  async assertMode(mode: ClusterMode): Promise<void> {
    for (const machine of this.#machines) {
      const running = await this.page(machine, '/proxyMode');
      if (running !== mode)
        throw new Error(`kube-proxy of ${machine.name} runs in mode ${running}, not ${mode}`);
    }
  }

  /** A page of the metrics port, which only the node itself reaches. */
  page(machine: Machine, path: string): Promise<string> {
    return machine.run('curl', ['--silent', '--fail', `http://127.0.0.1:10249${path}`]);
  }

  /** Writes logs and metrics of all nodes into a folder. */
  async save(directory: string): Promise<void> {
    mkdirSync(directory, { recursive: true });
    const selector = ['--selector=k8s-app=kube-proxy', '--tail=-1', '--prefix'];
    const logs = await this.#kubectl.run('--namespace=kube-system', 'logs', ...selector);
    writeFileSync(join(directory, 'kube-proxy.log'), logs);
    for (const machine of this.#machines)
      writeFileSync(join(directory, `${machine.name}.metrics`), await this.page(machine, '/metrics'));
  }

  #writeManifests({ which, mode, overlay = overlays[mode], configuration = [] }: Deployment): void {
    rmSync(this.#directory, { recursive: true, force: true });
    cpSync(manifests, join(this.#directory, 'kustomize'), { recursive: true });
    this.#edit('base/kubeconfig.conf', (text) => text.replace(/server: .*/, `server: ${apiServer}`));
    // The size of the connection table cannot be set from another network namespace than the machine's first.
    const lines = ['conntrack: {maxPerCore: 0}', ...configuration];
    const modeFile = overlay.startsWith('overlays/nftables') ? 'overlays/nftables' : overlay;
    this.#edit(`${modeFile}/config.conf`, (text) =>
      [
        text
          .replace(/^clusterCIDR:.*/m, `clusterCIDR: ${podNetwork}`)
          .replace(/^mode:.*/m, `mode: ${mode}`)
          .trimEnd(),
        ...lines,
        '',
      ].join('\n'),
    );
    const [newName, newTag] = imageOf[which].split(':');
    const kustomization = {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      resources: [`kustomize/${overlay}`],
      images: [{ name: 'kube-proxy-ts', newName, newTag }],
    };
    writeFileSync(join(this.#directory, 'kustomization.yaml'), JSON.stringify(kustomization));
  }

  #edit(file: string, change: (text: string) => string): void {
    const path = join(this.#directory, 'kustomize', file);
    writeFileSync(path, change(readFileSync(path, 'utf8')));
  }
}
