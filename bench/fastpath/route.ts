import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ownProgram } from '../programs/program.ts';
import type { ClientResult, ClientTask } from '../userspace/client.ts';
import { runClient, type Served, startScript } from '../userspace/processes.ts';

/** Who sends, and how it reaches the endpoint, a pod of another node. */
export const paths = {
  'pod → remote pod': { from: 'pod', ip: '10.96.0.1', port: 80 },
  'outside → node port → remote pod': { from: 'outside', ip: '192.0.2.10', port: 30_080 },
} as const;

export type PathName = keyof typeof paths;

const nodeIP = '192.0.2.10';
const gateway = '169.254.1.1';
const hosts = { pod: '10.244.1.5', remote: '10.244.2.21', outside: '203.0.113.5' } as const;
const endpointPort = 8080;

/** A node between hosts, in network namespaces, with a program of its own in nftables mode. */
export class Route {
  readonly #name: string;
  readonly #directory = mkdtempSync(join(tmpdir(), 'kpt-bench-'));
  #program: ChildProcess | undefined;
  #server: Served | undefined;

  static async open(name: string, flags: readonly string[]): Promise<Route> {
    const route = new Route(name);
    try {
      await route.#start(flags);
    } catch (error) {
      await route.close();
      throw error;
    }
    return route;
  }

  private constructor(name: string) {
    this.#name = `kpt-bench-${process.pid}-${name}`;
    this.#connect();
  }

  /** Runs a client on one of the paths. */
  run(path: PathName, task: Omit<ClientTask, 'ip' | 'port'>): Promise<ClientResult> {
    const { from, ip, port } = paths[path];
    return runClient({ ...task, ip, port }, this.#in(from));
  }

  async close(): Promise<void> {
    this.#server?.close();
    if (this.#program?.kill()) await once(this.#program, 'close');
    for (const host of ['node', ...Object.keys(hosts)]) {
      try {
        ip('netns', 'delete', this.#namespace(host));
      } catch {
        // It was not made.
      }
    }
    rmSync(this.#directory, { recursive: true });
  }

  #namespace(host: string): string {
    return `${this.#name}-${host}`;
  }

  #in(host: string): string[] {
    return ['ip', 'netns', 'exec', this.#namespace(host)];
  }

  #connect(): void {
    const node = this.#namespace('node');
    ip('netns', 'add', node);
    ip('-n', node, 'link', 'set', 'lo', 'up');
    ip('-n', node, 'addr', 'add', `${nodeIP}/32`, 'dev', 'lo');
    ip('netns', 'exec', node, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward');
    for (const [host, address] of Object.entries(hosts)) {
      const namespace = this.#namespace(host);
      ip('netns', 'add', namespace);
      ip('-n', node, 'link', 'add', host, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
      ip('-n', node, 'addr', 'add', `${gateway}/32`, 'dev', host, 'scope', 'link');
      ip('-n', node, 'link', 'set', host, 'up');
      ip('-n', node, 'route', 'add', address, 'dev', host, 'src', nodeIP);
      ip('-n', namespace, 'link', 'set', 'eth0', 'up');
      ip('-n', namespace, 'addr', 'add', `${address}/32`, 'dev', 'eth0');
      ip('-n', namespace, 'route', 'add', gateway, 'dev', 'eth0');
      ip('-n', namespace, 'route', 'add', 'default', 'via', gateway);
    }
  }

  async #start(flags: readonly string[]): Promise<void> {
    this.#server = await startScript('peer', [hosts.remote, String(endpointPort)], this.#in('remote'));
    writeFileSync(join(this.#directory, 'web.yaml'), JSON.stringify(manifest()));
    const args = [
      ...['--manifests', this.#directory, '--proxy-mode', 'nftables', '--hostname-override', 'n1'],
      ...[
        '--bind-address',
        nodeIP,
        '--nodeport-addresses',
        `${nodeIP}/32`,
        '--cluster-cidr',
        '10.244.0.0/16',
      ],
      // Only the machine's own namespace has these parameters.
      '--conntrack-max-per-core=0',
      ...flags,
    ];
    const [program = '', ...rest] = [...this.#in('node'), ownProgram, ...args];
    this.#program = spawn(program, rest, { stdio: 'ignore' });
    for (const path of Object.keys(paths) as PathName[]) {
      for (let attempt = 1; ; attempt++) {
        const { failures } = await this.run(path, { kind: 'connections', count: 1, concurrency: 1 });
        if (failures === 0) break;
        if (attempt === 30) throw new Error(`no connection ${path}`);
      }
    }
  }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

function manifest(): unknown {
  const metadata = { name: 'web', namespace: 'default' };
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: {
      type: 'NodePort',
      clusterIP: paths['pod → remote pod'].ip,
      clusterIPs: [paths['pod → remote pod'].ip],
      ipFamilies: ['IPv4'],
      ports: [{ name: 'web', protocol: 'TCP', port: 80, targetPort: endpointPort, nodePort: 30_080 }],
    },
  };
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'web', protocol: 'TCP', port: endpointPort }],
    endpoints: [{ addresses: [hosts.remote], conditions: { ready: true }, nodeName: 'n2' }],
  };
  return { apiVersion: 'v1', kind: 'List', items: [service, slice] };
}
