import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiServer, startApiServer } from '../test/cluster/apiserver/server.ts';
import type { RawObject } from '../test/cluster/apiserver/store.ts';

const sizes = [
  [1_000, 3],
  [5_000, 3],
  [10_000, 10],
  [50_000, 10],
] as const;
/** The peer is not asked for more than this many services: it would take many minutes. */
const peerServices = 10_000;
const changes = 100;
const settledMs = 3000;
const patienceMs = 180_000;
const listener = '192.0.2.2';
const nobody = '192.0.2.3';
const port = 8080;

interface Figures {
  readonly coldSeconds: number;
  readonly changeP50: number;
  readonly changeP99: number;
  readonly cpuPerChange: number;
  readonly residentMB: number;
}

/**
 * The whole program at several sizes, through a real API and a real kernel: from its start until the first packet
 * arrives at an endpoint, and from a changed endpoint until a packet follows it. `KUBE_PROXY_PEER` names a kube-proxy
 * to run in the same table. Needs root: everything runs in a network namespace that goes away with it.
 */
export async function run(): Promise<void> {
  if (process.argv[2] === 'inside') return measure();
  const setUp = [
    'ip link set lo up',
    ...['192.0.2.1', listener, nobody].map((address) => `ip addr add ${address}/32 dev lo`),
    'ip route add default dev lo src 192.0.2.1',
    'exec "$0" "$@"',
  ];
  const args = ['-n', 'sh', '-c', setUp.join(' && '), process.execPath, import.meta.filename, 'inside'];
  const { status, error } = spawnSync('unshare', args, { stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) throw new Error(`unshare ended with status ${status}; it needs root`);
}

async function measure(): Promise<void> {
  const own = resolve(import.meta.dirname, '../bin/kube-proxy');
  const peer = process.env.KUBE_PROXY_PEER;
  const echo = createServer((socket) => socket.end()).listen(port, listener);
  const rows: Record<string, string>[] = [];
  for (const [services, endpoints] of sizes) {
    const size = `${services.toLocaleString('en')} × ${endpoints}`;
    const ours = await measureProgram(own, services, endpoints);
    rows.push(row(size, 'kube-proxy-ts', ours));
    if (!peer || services > peerServices) continue;
    const theirs = await measureProgram(peer, services, endpoints);
    rows.push(row(size, 'peer', theirs), ratio(ours, theirs));
  }
  echo.close();
  console.table(rows);
}

function row(size: string, program: string, figures: Figures): Record<string, string> {
  return {
    'services × endpoints': size,
    program,
    'cold (s)': figures.coldSeconds.toFixed(2),
    'change p50 (ms)': figures.changeP50.toFixed(1),
    'change p99 (ms)': figures.changeP99.toFixed(1),
    'CPU per change (ms)': figures.cpuPerChange.toFixed(1),
    'resident (MB)': figures.residentMB.toFixed(0),
  };
}

function ratio(ours: Figures, theirs: Figures): Record<string, string> {
  const of = (key: keyof Figures) => (ours[key] / theirs[key]).toFixed(3);
  return {
    'services × endpoints': '',
    program: 'ours / peer',
    'cold (s)': of('coldSeconds'),
    'change p50 (ms)': of('changeP50'),
    'change p99 (ms)': of('changeP99'),
    'CPU per change (ms)': of('cpuPerChange'),
    'resident (MB)': of('residentMB'),
  };
}

async function measureProgram(program: string, services: number, endpoints: number): Promise<Figures> {
  spawnSync(resolve(import.meta.dirname, '../bin/kube-proxy'), ['--cleanup', '--proxy-mode=nftables']);
  const cluster = await Cluster.open(services, endpoints);
  const begun = performance.now();
  const child = spawn(program, ['--config', cluster.config], { stdio: 'ignore' });
  try {
    await reached(child, serviceIP(services - 1));
    const coldSeconds = (performance.now() - begun) / 1000;
    await sleep(settledMs);
    const cpuBefore = cpuMs(child);
    const times: number[] = [];
    for (let i = 0; i < changes; i++)
      times.push(await cluster.change(child, 1 + ((i * 37) % (services - 2))));
    times.sort((a, b) => a - b);
    return {
      coldSeconds,
      changeP50: times[Math.floor(changes / 2)] ?? 0,
      changeP99: times[Math.floor(changes * 0.99)] ?? 0,
      cpuPerChange: (cpuMs(child) - cpuBefore) / changes,
      residentMB: residentMB(child),
    };
  } finally {
    child.kill('SIGKILL');
    await new Promise((done) => child.once('close', done));
    await cluster.close();
  }
}

/** An API server full of plain services, and the files that lead a kube-proxy to it. */
class Cluster {
  readonly config: string;
  readonly #api: ApiServer;
  readonly #directory: string;
  readonly #endpoints: number;
  #generation = 0;

  static async open(services: number, endpoints: number): Promise<Cluster> {
    const api = await startApiServer({ gzip: true });
    api.put('nodes', {
      metadata: { name: 'node-a' },
      status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
    });
    for (let i = 0; i < services; i++) {
      api.put('services', service(i));
      // The last service is there to be reached; all others have endpoints that nobody is at.
      const first = i === services - 1 ? listener : undefined;
      api.put('endpointSlices', slice(i, i === services - 1 ? 1 : endpoints, first, 0));
    }
    return new Cluster(api, endpoints);
  }

  private constructor(api: ApiServer, endpoints: number) {
    this.#api = api;
    this.#endpoints = endpoints;
    this.#directory = mkdtempSync(join(tmpdir(), 'kpt-bench-'));
    const kubeconfig = join(this.#directory, 'kubeconfig');
    const access = {
      'current-context': 'bench',
      contexts: [{ name: 'bench', context: { cluster: 'bench', user: '' } }],
      clusters: [{ name: 'bench', cluster: { server: api.url } }],
    };
    writeFileSync(kubeconfig, JSON.stringify(access));
    this.config = join(this.#directory, 'config.yaml');
    const config = {
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: 'nftables',
      hostnameOverride: 'node-a',
      clientConnection: { kubeconfig, contentType: 'application/json' },
      conntrack: { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
      nftables: { minSyncPeriod: '1ms' },
    };
    writeFileSync(this.config, JSON.stringify(config));
  }

  /**
   * Gives the service one endpoint where nobody answers, then one that does: the time in ms from the second change
   * until a connection gets through. Endpoints are swapped, not added, so that every try meets the new one.
   */
  async change(child: ChildProcess, index: number): Promise<number> {
    this.#api.put('endpointSlices', slice(index, 1, nobody, ++this.#generation));
    while ((await tryConnect(serviceIP(index))) !== 'refused') await sleep(1);
    const begun = performance.now();
    this.#api.put('endpointSlices', slice(index, 1, listener, ++this.#generation));
    await reached(child, serviceIP(index));
    const elapsed = performance.now() - begun;
    this.#api.put('endpointSlices', slice(index, this.#endpoints, undefined, ++this.#generation));
    return elapsed;
  }

  async close(): Promise<void> {
    await this.#api.close();
    rmSync(this.#directory, { recursive: true });
  }
}

function serviceIP(index: number): string {
  return address(10, 96, index + 1);
}

function address(first: number, second: number, number: number): string {
  return [first, second + (number >> 16), (number >> 8) & 255, number & 255].join('.');
}

function service(index: number): RawObject {
  const clusterIP = serviceIP(index);
  return {
    metadata: { namespace: `team-${index % 100}`, name: `service-${index}`, labels: { app: `app-${index}` } },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ['IPv4'],
      selector: { app: `app-${index}` },
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: port }],
    },
    status: { loadBalancer: {} },
  };
}

function slice(index: number, count: number, first: string | undefined, generation: number): RawObject {
  const name = `service-${index}`;
  const namespace = `team-${index % 100}`;
  return {
    metadata: {
      namespace,
      name: `${name}-abcde`,
      generation,
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType: 'IPv4',
    endpoints: Array.from({ length: count }, (_, i) => ({
      addresses: [i === 0 && first ? first : address(10, 128, index * count + i)],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `node-${(index + i) % 100}`,
      targetRef: { kind: 'Pod', namespace, name: `${name}-${i}` },
    })),
    ports: [{ name: 'http', port, protocol: 'TCP' }],
  };
}

async function reached(child: ChildProcess, ip: string): Promise<void> {
  const end = performance.now() + patienceMs;
  while ((await tryConnect(ip)) !== 'connected') {
    if (child.exitCode !== null) throw new Error(`the program ended with code ${child.exitCode}`);
    if (performance.now() > end) throw new Error(`${ip} was not reached in time`);
    await sleep(1);
  }
}

/** One connection attempt; without a rule the packet goes to an address of nobody and is not answered. */
function tryConnect(ip: string): Promise<'connected' | 'refused' | 'silent'> {
  return new Promise((settle) => {
    const socket = connect({ host: ip, port: 80 });
    const end = (outcome: 'connected' | 'refused' | 'silent') => {
      socket.destroy();
      clearTimeout(timer);
      settle(outcome);
    };
    const timer = setTimeout(() => end('silent'), 50);
    socket.once('connect', () => end('connected'));
    socket.once('error', () => end('refused'));
  });
}

function cpuMs(child: ChildProcess): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  // Clock ticks of 10 ms, in user and kernel mode.
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function residentMB(child: ChildProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

if (process.argv[1] === import.meta.filename) await run();
