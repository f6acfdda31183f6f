import { type ChildProcess, fork, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cpu, cpuOf } from '../programs/program.ts';
import { ApiClient } from './client.ts';

/** An API server in a process of its own, on loopback. */
export interface ServerProcess {
  /** For people. */
  readonly name: string;
  readonly client: ApiClient;
  cpu(): Cpu;
  /** Ends the server at once and starts it again with the same objects; undefined if it cannot do that. */
  restart: (() => Promise<void>) | undefined;
  close(): Promise<void>;
}

const etcdUrl = 'http://127.0.0.1:12379';
const peerUrl = 'http://127.0.0.1:12380';
const port = 16443;
const token = 'bench';
const patienceMs = 120_000;

/** kube-apiserver if `KUBE_APISERVER` and `ETCD` name the programs, else the test API server. */
export function startServer(): Promise<ServerProcess> {
  const { KUBE_APISERVER: apiserver, ETCD: etcd } = process.env;
  return apiserver && etcd ? RealServer.start(apiserver, etcd) : startTestServer();
}

async function startTestServer(): Promise<ServerProcess> {
  const child = fork(resolve(import.meta.dirname, 'test-server.ts'));
  const [url] = (await once(child, 'message')) as [string];
  return {
    name: 'the test API server',
    client: new ApiClient(url, token),
    cpu: () => cpuOf(child.pid),
    restart: undefined,
    close: () => end(child),
  };
}

/** etcd and kube-apiserver. */
class RealServer implements ServerProcess {
  readonly name = 'kube-apiserver';
  readonly client = new ApiClient(`https://127.0.0.1:${port}`, token);
  readonly #directory = mkdtempSync(join(tmpdir(), 'kpt-bench-api-'));
  readonly #program: string;
  readonly #etcd: ChildProcess;
  #server: ChildProcess;

  static async start(apiserver: string, etcd: string): Promise<RealServer> {
    const server = new RealServer(apiserver, etcd);
    try {
      await server.#isReady();
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  private constructor(apiserver: string, etcd: string) {
    this.#program = apiserver;
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(join(this.#directory, 'sa.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }));
    writeFileSync(join(this.#directory, 'tokens'), `${token},bench,1,"system:masters"\n`);
    this.#etcd = spawn(etcd, etcdFlags(this.#directory), { stdio: 'ignore' });
    this.#server = this.#spawn();
    process.once('exit', () => {
      this.#server.kill('SIGKILL');
      this.#etcd.kill('SIGKILL');
      rmSync(this.#directory, { recursive: true, force: true });
    });
  }

  cpu(): Cpu {
    return cpuOf(this.#server.pid);
  }

  restart = async (): Promise<void> => {
    await end(this.#server);
    this.#server = this.#spawn();
    await this.#isReady();
  };

  async close(): Promise<void> {
    this.client.close();
    await Promise.all([end(this.#server), end(this.#etcd)]);
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #spawn(): ChildProcess {
    return spawn(this.#program, apiserverFlags(this.#directory), { stdio: 'ignore' });
  }

  async #isReady(): Promise<void> {
    for (let waited = 0; waited < patienceMs; waited += 100) {
      if (this.#server.exitCode !== null)
        throw new Error(`kube-apiserver ended with ${this.#server.exitCode}`);
      const isReady = await this.client.request('GET', '/readyz').then(
        ({ status }) => status === 200,
        () => false,
      );
      if (isReady) return;
      await sleep(100);
    }
    throw new Error('kube-apiserver is not ready after two minutes');
  }
}

function etcdFlags(directory: string): string[] {
  return [
    `--data-dir=${join(directory, 'etcd')}`,
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    '--unsafe-no-fsync',
  ];
}

function apiserverFlags(directory: string): string[] {
  const key = join(directory, 'sa.key');
  return [
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${directory}`,
    '--service-account-issuer=https://bench',
    `--service-account-key-file=${key}`,
    `--service-account-signing-key-file=${key}`,
    '--service-cluster-ip-range=10.96.0.0/12',
    `--token-auth-file=${join(directory, 'tokens')}`,
    '--authorization-mode=RBAC',
    '--disable-admission-plugins=ServiceAccount',
  ];
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'close');
}
