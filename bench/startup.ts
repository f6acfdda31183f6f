import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startApiServer } from '../test/cluster/apiserver/server.ts';
import { apiNode } from '../test/cluster/objects.ts';
import type { Bench } from './part.ts';
import { handBack, inNamespace, taskOf } from './programs/namespace.ts';
import { ownProgram } from './programs/program.ts';
import { type Measurement, measurements } from './report/measurement.ts';
import { median } from './report/median.ts';

const rounds = 7;
const settledMs = 1500;
const patienceMs = 20_000;

interface Start {
  /** From the start of the process until /livez answers. */
  readonly milliseconds: number;
  readonly residentMB: number;
}

/**
 * Measures the time from the start of the command until its health server answers, and its resident memory when it is
 * idle, for kube-proxy-ts and, if set, the peer. The API server has one node. Needs root: everything runs in a network
 * namespace, which is removed at the end.
 */
export async function run({ peer, step, record }: Bench): Promise<void> {
  step(`${rounds} starts of each program`);
  record(await inNamespace(import.meta.filename, [peer]));
}

async function inside(peer: string | null | undefined): Promise<Measurement[]> {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-bench-'));
  const api = await startApiServer();
  try {
    api.put('nodes', apiNode('node-a'));
    const config = writeConfig(directory, api.url);
    const figuresOf = async (program: string, path: string) => {
      const { milliseconds, residentMB } = await medianStart(path, config);
      return measurements(
        { part: 'startup', topic: 'from start to health', program },
        { 'to healthz': [milliseconds, 'ms'], resident: [residentMB, 'MB'] },
      );
    };
    const own = await figuresOf('kube-proxy-ts', ownProgram);
    return peer ? [...own, ...(await figuresOf('peer', peer))] : own;
  } finally {
    await api.close();
    rmSync(directory, { recursive: true });
  }
}

function writeConfig(directory: string, server: string): string {
  const kubeconfig = join(directory, 'kubeconfig');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      'current-context': 'bench',
      contexts: [{ name: 'bench', context: { cluster: 'bench', user: '' } }],
      clusters: [{ name: 'bench', cluster: { server } }],
    }),
  );
  const config = join(directory, 'config.yaml');
  // YAML, as in every cluster; JSON would be read faster.
  writeFileSync(
    config,
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: node-a
clientConnection:
  kubeconfig: ${kubeconfig}
conntrack:
  maxPerCore: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
`,
  );
  return config;
}

/** The median of several starts. The first start only warms caches. */
async function medianStart(program: string, config: string): Promise<Start> {
  const all: Start[] = [];
  for (let i = 0; i <= rounds; i++) {
    const measured = await start(program, config);
    if (i > 0) all.push(measured);
  }
  return {
    milliseconds: median(all.map(({ milliseconds }) => milliseconds)),
    residentMB: median(all.map(({ residentMB }) => residentMB)),
  };
}

async function start(program: string, config: string): Promise<Start> {
  const begun = performance.now();
  const child = spawn(program, ['--config', config], { stdio: 'ignore' });
  try {
    await answers(child);
    const milliseconds = performance.now() - begun;
    await sleep(settledMs);
    return { milliseconds, residentMB: residentMB(child) };
  } finally {
    child.kill('SIGKILL');
    await new Promise((done) => child.once('close', done));
  }
}

async function answers(child: ChildProcess): Promise<void> {
  const end = performance.now() + patienceMs;
  while (!(await isServing())) {
    if (child.exitCode !== null) throw new Error(`the program ended with code ${child.exitCode}`);
    if (performance.now() > end) throw new Error('the program never served /livez');
    await sleep(2);
  }
}

function isServing(): Promise<boolean> {
  return new Promise((settle) => {
    const request = http.get('http://127.0.0.1:10256/livez', { agent: false }, (response) => {
      response.resume();
      settle(true);
    });
    request.on('error', () => settle(false));
  });
}

function residentMB(child: ChildProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

if (import.meta.main) {
  const [peer] = taskOf<[string | null | undefined]>(process.argv);
  handBack(await inside(peer));
}
