import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startApiServer } from '../test/cluster/apiserver/server.ts';
import { node } from '../test/kube/objects.ts';

const rounds = 7;
const settledMs = 1500;
const patienceMs = 20_000;

interface Measurement {
  /** From the start of the process until /livez answers. */
  readonly milliseconds: number;
  readonly residentMB: number;
}

/**
 * Time from the start of the command to an answering health server, and resident memory once it has settled, with
 * an API server that knows one node. `KUBE_PROXY_PEER` names a kube-proxy to run beside it. Needs root: everything
 * runs in a network namespace that goes away with it.
 */
export async function run(): Promise<void> {
  if (process.argv[2] === 'inside') return measure();
  const command = `ip link set lo up && exec "$0" "$@"`;
  const args = ['-n', 'sh', '-c', command, process.execPath, import.meta.filename, 'inside'];
  const { status, error } = spawnSync('unshare', args, { stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) throw new Error(`unshare ended with status ${status}; it needs root`);
}

async function measure(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-bench-'));
  const api = await startApiServer();
  try {
    api.put('nodes', node('node-a'));
    const config = writeConfig(directory, api.url);
    const own = await median(resolve(import.meta.dirname, '../bin/kube-proxy'), config);
    const rows = [row('kube-proxy-ts', own)];
    const peer = process.env.KUBE_PROXY_PEER;
    if (peer) {
      const other = await median(peer, config);
      rows.push(row(peer, other), {
        program: 'ratio',
        'to healthz (ms)': (own.milliseconds / other.milliseconds).toFixed(2),
        'resident (MB)': (own.residentMB / other.residentMB).toFixed(2),
      });
    }
    console.table(rows);
  } finally {
    await api.close();
    rmSync(directory, { recursive: true });
  }
}

function row(program: string, { milliseconds, residentMB }: Measurement) {
  return { program, 'to healthz (ms)': milliseconds.toFixed(0), 'resident (MB)': residentMB.toFixed(1) };
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
  // YAML, as in every cluster, although JSON would be read faster.
  writeFileSync(
    config,
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: node-a
clientConnection:
  kubeconfig: ${kubeconfig}
  contentType: application/json
conntrack:
  maxPerCore: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
`,
  );
  return config;
}

/** The middle of several starts; the first one only warms caches. */
async function median(program: string, config: string): Promise<Measurement> {
  const all: Measurement[] = [];
  for (let i = 0; i <= rounds; i++) {
    const measured = await start(program, config);
    if (i > 0) all.push(measured);
  }
  const middle = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
  return {
    milliseconds: middle(all.map(({ milliseconds }) => milliseconds)),
    residentMB: middle(all.map(({ residentMB }) => residentMB)),
  };
}

async function start(program: string, config: string): Promise<Measurement> {
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

if (process.argv[1] === import.meta.filename) await run();
