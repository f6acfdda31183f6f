import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { firstSync } from '../programs/measure.ts';
import { type Cpu, cpuSince, Program } from '../programs/program.ts';
import type { WrittenCluster } from './cluster.ts';
import { type NodeNamespace, Nodes, serverIP } from './nodes.ts';
import { CountingRelay } from './relay.ts';
import type { ServerProcess } from './server.ts';

/** Mean costs for one node. CPU times are of user space and kernel together, in ms. */
export interface NodeCosts {
  readonly bytes: number;
  readonly connections: number;
  readonly serverCpu: number;
  readonly ownCpu: number;
  readonly peakMB: number;
}

export interface ProgramCosts {
  readonly start: NodeCosts;
  readonly updates: NodeCosts;
}

/** What the server costs without nodes. */
export interface Baseline {
  /** CPU time per ms while nothing happens. */
  readonly idle: number;
  /** CPU time of the updates alone. */
  readonly updates: number;
}

export const updates = 1000;
const updatesPerSecond = 100;
const idleMs = 5000;
const settledMs = 3000;
const quietMs = 2000;
/** Both programs have resumed their watches by then. */
const resumedMs = 8000;

/** Measures the server without nodes. */
export async function measureBaseline(server: ServerProcess, cluster: WrittenCluster): Promise<Baseline> {
  await sleep(idleMs);
  const before = server.cpu();
  await sleep(idleMs);
  const idle = total(cpuSince(before, server.cpu())) / idleMs;
  const spent = await serverCpuOf(server, () => writeUpdates(server, cluster));
  return { idle, updates: spent };
}

/** Starts the program on so many nodes, then changes slices. */
export async function measureOnNodes(
  path: string,
  count: number,
  server: ServerProcess,
  cluster: WrittenCluster,
  baseline: Baseline,
): Promise<ProgramCosts> {
  using nodes = new Nodes(count);
  const directory = mkdtempSync(join(tmpdir(), 'kpt-bench-'));
  const relay = await CountingRelay.open(serverIP, new URL(server.client.url));
  const programs: Program[] = [];
  const meter = new Meter(server, relay, programs);
  try {
    for (const node of nodes.all) {
      programs.push(
        new Program(
          path,
          writeConfig(directory, node, server),
          [],
          ['nsenter', `--net=/run/netns/${node.name}`],
        ),
      );
    }
    await isQuiet(relay);
    const idleCpu = meter.elapsed() * baseline.idle;
    const serverCpu = meter.serverCpu() - idleCpu;
    await Promise.all(nodes.all.map(({ ip }, i) => hasSynced(programs[i], ip)));
    await sleep(settledMs);
    const start = meter.costs(serverCpu);
    // A watch that began with a list may be compressed. The watches that follow it, some minutes later, are not.
    relay.cut();
    await sleep(resumedMs);
    meter.reset();
    await writeUpdates(server, cluster);
    await isQuiet(relay);
    return { start, updates: meter.costs(meter.serverCpu() - baseline.updates - quietMs * baseline.idle) };
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
    await relay.close();
    rmSync(directory, { recursive: true });
  }
}

/** Measures the programs and the server from its creation, or from the last `reset`. */
class Meter {
  readonly #server: ServerProcess;
  readonly #relay: CountingRelay;
  readonly #programs: readonly Program[];
  #begun = 0;
  #before = { server: 0, own: 0, received: 0 };

  constructor(server: ServerProcess, relay: CountingRelay, programs: readonly Program[]) {
    this.#server = server;
    this.#relay = relay;
    this.#programs = programs;
    this.reset();
  }

  reset(): void {
    this.#begun = performance.now();
    this.#before = { server: total(this.#server.cpu()), own: this.#ownCpu(), received: this.#relay.received };
  }

  elapsed(): number {
    return performance.now() - this.#begun;
  }

  serverCpu(): number {
    return total(this.#server.cpu()) - this.#before.server;
  }

  /** Mean costs for one node; the server's share is given. */
  costs(serverCpu: number): NodeCosts {
    const count = this.#programs.length;
    return {
      bytes: (this.#relay.received - this.#before.received) / count,
      connections: this.#relay.connections / count,
      serverCpu: serverCpu / count,
      ownCpu: (this.#ownCpu() - this.#before.own) / count,
      peakMB: Math.max(...this.#programs.map((program) => program.memory().peak)),
    };
  }

  #ownCpu(): number {
    return this.#programs.reduce((sum, program) => sum + total(program.cpu()), 0);
  }
}

async function hasSynced(program: Program | undefined, ip: string): Promise<void> {
  await firstSync(() => program?.hasEnded ?? true, `http://${ip}:10249/metrics`);
}

function writeUpdates(server: ServerProcess, cluster: WrittenCluster): Promise<void> {
  return server.client.writeSteadily(updates, updatesPerSecond, (i) => cluster.update(i));
}

/** Waits until the server has sent nothing for a while. */
export async function isQuiet(relay: CountingRelay): Promise<void> {
  const begun = performance.now();
  while (performance.now() - Math.max(begun, relay.lastAt) < quietMs || relay.lastAt < begun) await sleep(50);
}

export async function serverCpuOf(server: ServerProcess, act: () => Promise<void>): Promise<number> {
  const before = server.cpu();
  await act();
  return total(cpuSince(before, server.cpu()));
}

export function total({ own, kernel }: Cpu): number {
  return own + kernel;
}

function writeConfig(directory: string, { name, ip }: NodeNamespace, { client }: ServerProcess): string {
  const kubeconfig = join(directory, `${name}.kubeconfig`);
  const { protocol, port } = new URL(client.url);
  const server = `${protocol}//${serverIP}:${port}`;
  const cluster = protocol === 'https:' ? { server, 'insecure-skip-tls-verify': true } : { server };
  const access = {
    'current-context': 'bench',
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    clusters: [{ name: 'bench', cluster }],
    users: [{ name: 'bench', user: { token: client.token } }],
  };
  const config = {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    hostnameOverride: nodeName(ip),
    metricsBindAddress: '0.0.0.0:10249',
    clientConnection: { kubeconfig },
    conntrack: { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  };
  const path = join(directory, `${name}.config`);
  writeFileSync(kubeconfig, JSON.stringify(access));
  writeFileSync(path, JSON.stringify(config));
  return path;
}

export function nodeName(ip: string): string {
  return `node-${ip.split('.').at(-1)}`;
}
