import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ApiServer, type ApiServerOptions, startApiServer } from '../cluster/apiserver/server.ts';
import { apiNode } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { kubeProxy } from './run.ts';

/** Settings that leave the machine's own connection tracking alone. */
const quietConntrack = { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' };

/** A directory with a kubeconfig and a configuration file, and their API server. */
export class Site {
  readonly directory = mkdtempSync(join(tmpdir(), 'kpt-program-'));
  readonly api: ApiServer;
  readonly #running = new Set<StartedProxy>();

  private constructor(api: ApiServer) {
    this.api = api;
    const kubeconfig = {
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: '' } }],
      clusters: [{ name: 'test', cluster: { server: api.url } }],
    };
    writeFileSync(this.path('kubeconfig'), JSON.stringify(kubeconfig));
  }

  /** Starts an API server with one node, `node-a`. */
  static async open(server: ApiServerOptions = {}): Promise<Site> {
    const api = await startApiServer(server);
    api.put('nodes', apiNode('node-a'));
    return new Site(api);
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Writes a configuration file and returns its path. */
  writeConfig(settings: Record<string, unknown> = {}, name = 'config.yaml'): string {
    const config = {
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: 'nftables',
      hostnameOverride: 'node-a',
      clientConnection: { kubeconfig: this.path('kubeconfig') },
      conntrack: quietConntrack,
      ...settings,
    };
    writeFileSync(this.path(name), JSON.stringify(config));
    return this.path(name);
  }

  /** Starts the program and waits until it serves health checks. */
  async start(config: string, args: readonly string[] = []): Promise<StartedProxy> {
    const proxy = this.spawn(['--config', config, ...args]);
    await proxy.serves('http://127.0.0.1:10256/livez');
    return proxy;
  }

  spawn(args: readonly string[]): StartedProxy {
    const proxy = new StartedProxy(args);
    this.#running.add(proxy);
    return proxy;
  }

  /** Ends every program that was started here. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#running].map((proxy) => proxy.kill()));
    this.#running.clear();
  }

  async close(): Promise<void> {
    await this.stopAll();
    await this.api.close();
    rmSync(this.directory, { recursive: true });
  }
}

/** A running kube-proxy. */
export class StartedProxy {
  readonly #child: ChildProcess;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  #stderr = '';

  /** Starts it in the network namespace of that name, or in that of this process. */
  constructor(args: readonly string[], namespace?: string) {
    const [program = kubeProxy, ...words] =
      namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace, kubeProxy];
    this.#child = spawn(program, [...words, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, TZ: 'UTC' },
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.exited = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => resolve({ code, signal }));
    });
  }

  get stderr(): string {
    return this.#stderr;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Waits until the log has a line that matches. */
  async logs(pattern: RegExp): Promise<void> {
    await this.#until(`log line ${pattern}`, async () => pattern.test(this.#stderr));
  }

  /** Waits until the URL answers with any status. */
  async serves(url: string): Promise<void> {
    await this.#until(url, async () => {
      try {
        await fetch(url);
        return true;
      } catch {
        return false;
      }
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exited;
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const holdsAlready = async () => {
      if (await holds()) return true;
      if (this.#child.exitCode !== null) throw new Error(`ended while waiting for ${what}:\n${this.#stderr}`);
      return false;
    };
    await eventually(what, holdsAlready, { everyMs: 20, onTimeout: () => this.#stderr });
  }
}
