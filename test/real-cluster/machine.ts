import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { dnsService, nodeAddress, podRange } from './addresses.ts';
import type { Folders } from './folders.ts';
import type { Kubectl } from './kubectl.ts';
import { connectNode } from './network.ts';
import type { Pki } from './pki.ts';
import { childOf, endDaemon, startDaemon, succeed, untilSuccessful } from './processes.ts';

const init = join(import.meta.dirname, 'node-init.sh');
const namespaces = ['--net', '--mount', '--pid', '--uts', '--ipc'];

export interface MachineOptions {
  readonly folders: Folders;
  readonly pki: Pki;
  readonly kubectl: Kubectl;
  /** Archives to import. */
  readonly images: readonly string[];
  readonly pauseImage: string;
  /** The control group above those of all containers. */
  readonly cgroup: string;
}

/** A node: containerd and a kubelet in namespaces of their own. */
export class Machine {
  readonly node: number;
  readonly name: string;
  readonly #options: MachineOptions;
  readonly #directory: string;
  #init = 0;
  #kubelet: ChildProcess | undefined;

  constructor(node: number, options: MachineOptions) {
    this.node = node;
    this.name = `node${node}`;
    this.#options = options;
    this.#directory = join(options.folders.state, this.name);
    mkdirSync(this.#directory, { recursive: true });
  }

  /** Returns when the node is known to the API server. */
  async start(): Promise<void> {
    await this.#startInit();
    connectNode(this.node, this.#init);
    this.#writeSettings();
    this.#daemon('containerd', ['--config', join(this.#directory, 'containerd.toml')]);
    await untilSuccessful(`containerd of ${this.name}`, 60, () => this.run('ctr', ['version']));
    for (const file of this.#options.images)
      await this.run('ctr', ['--namespace', 'k8s.io', 'images', 'import', file], 600_000);
    this.startKubelet();
    await this.#describe();
  }

  startKubelet(): void {
    const { v4, v6 } = nodeAddress(this.node);
    this.#kubelet = this.#daemon('kubelet', [
      `--config=${join(this.#directory, 'kubelet.json')}`,
      `--kubeconfig=${this.#options.pki.path(`${this.name}.kubeconfig`)}`,
      `--hostname-override=${this.name}`,
      `--node-ip=${v4},${v6}`,
      '--cert-dir=/var/lib/kubelet/pki',
      '--v=2',
    ]);
  }

  /** nsenter passes no signal on, so the kubelet itself gets it. */
  async stopKubelet(): Promise<void> {
    const kubelet = this.#kubelet;
    if (!kubelet?.pid) return;
    process.kill(childOf(kubelet.pid), 'SIGTERM');
    await endDaemon(kubelet, 'SIGCONT');
  }

  /** Runs a command in the node and returns its output. */
  run(command: string, args: readonly string[], timeout?: number): Promise<string> {
    return succeed('nsenter', [...this.enter(), command, ...args], timeout);
  }

  /** Drops the larger files of all images from memory, except those that a process uses. */
  async forgetImageFiles(): Promise<void> {
    const layers = '/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots';
    // Files of containers are among them, and may be gone at any moment: no failure.
    const files = [layers, '-ignore_readdir_race', '-type', 'f', '-size', '+64k'];
    const drop = ['dd', 'if={}', 'iflag=nocache', 'count=0', 'status=none'];
    await this.run('find', [...files, '-exec', 'sync', '{}', ';', '-exec', ...drop, ';']);
  }

  /** Arguments of nsenter; all namespaces of the node when none is named. */
  enter(...which: readonly string[]): string[] {
    return ['--target', String(this.#init), ...(which.length > 0 ? which : namespaces)];
  }

  #daemon(program: string, args: readonly string[]): ChildProcess {
    const log = join(this.#directory, `${program}.log`);
    return startDaemon(log, 'nsenter', [...this.enter(), program, ...args]);
  }

  async #startInit(): Promise<void> {
    const args = ['--fork', '--kill-child', '--mount-proc', 'bash', init, this.name, this.#directory];
    const unshare = startDaemon(join(this.#directory, 'init.log'), 'unshare', [...namespaces, ...args]);
    while (!existsSync(join(this.#directory, 'ready'))) {
      if (unshare.exitCode !== null)
        throw new Error(`${this.name} cannot be made: see ${this.#directory}/init.log`);
      await sleep(50);
    }
    this.#init = childOf(unshare.pid ?? 0);
  }

  #writeSettings(): void {
    const write = (name: string, text: string): void => writeFileSync(join(this.#directory, name), text);
    mkdirSync(join(this.#directory, 'cni'));
    write('cni/10-kpt.conflist', JSON.stringify(this.#networkPlugins()));
    write('resolv.conf', '');
    write('kubelet.json', JSON.stringify(this.#kubeletConfiguration(), null, 2));
    write('containerd.toml', this.#containerdConfiguration());
  }

  #containerdConfiguration(): string {
    const { folders, pauseImage } = this.#options;
    return `version = 2
disabled_plugins = ${JSON.stringify(disabledPlugins)}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${folders.bin}"
    conf_dir = "${join(this.#directory, 'cni')}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`;
  }

  #networkPlugins(): object {
    const { v4, v6 } = podRange(this.node);
    const ipam = {
      type: 'host-local',
      ranges: [[{ subnet: v4 }], [{ subnet: v6 }]],
      routes: [{ dst: '0.0.0.0/0' }, { dst: '::/0' }],
    };
    const bridge = {
      type: 'bridge',
      bridge: 'cni0',
      isGateway: true,
      hairpinMode: true,
      ipMasq: false,
      ipam,
    };
    return {
      cniVersion: '0.4.0',
      name: 'kpt',
      plugins: [bridge, { type: 'portmap', capabilities: { portMappings: true } }],
    };
  }

  #kubeletConfiguration(): object {
    const { pki, cgroup } = this.#options;
    return {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      authentication: {
        anonymous: { enabled: false },
        x509: { clientCAFile: pki.path('ca.crt') },
        webhook: { enabled: false },
      },
      authorization: { mode: 'AlwaysAllow' },
      containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
      // Three kubelets share the control groups of one machine, so they make none for classes of pods.
      cgroupDriver: 'cgroupfs',
      cgroupsPerQOS: false,
      cgroupRoot: `/${cgroup}`,
      enforceNodeAllocatable: [],
      failCgroupV1: false,
      failSwapOn: false,
      clusterDNS: [dnsService],
      clusterDomain: 'cluster.local',
      resolvConf: join(this.#directory, 'resolv.conf'),
      evictionHard: { 'memory.available': '1Mi', 'nodefs.available': '1Mi', 'imagefs.available': '1Mi' },
      imageGCHighThresholdPercent: 100,
      imageGCLowThresholdPercent: 99,
      maxPods: 200,
      volumePluginDir: '/var/lib/kubelet/volume-plugins',
    };
  }

  /** Adds what a cloud and a network add-on would: the addresses of pods, and a zone. */
  async #describe(): Promise<void> {
    const { kubectl } = this.#options;
    const { v4, v6 } = podRange(this.node);
    const ranges = { spec: { podCIDR: v4, podCIDRs: [v4, v6] } };
    await untilSuccessful(`${this.name} known to the API server`, 180, () =>
      kubectl.run('patch', 'node', this.name, '--patch', JSON.stringify(ranges)),
    );
    const labels = [`topology.kubernetes.io/zone=zone${this.node}`, 'topology.kubernetes.io/region=region1'];
    await kubectl.run('label', '--overwrite', 'node', this.name, ...labels);
  }
}

/** Plugins that this machine cannot run, or that would make folders on it. */
const disabledPlugins = [
  'io.containerd.snapshotter.v1.btrfs',
  'io.containerd.snapshotter.v1.zfs',
  'io.containerd.snapshotter.v1.devmapper',
  'io.containerd.snapshotter.v1.aufs',
  'io.containerd.internal.v1.opt',
];
