import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from '../eventually.ts';
import type { Cluster } from './cluster.ts';

const HEALTH_URL = 'http://127.0.0.1:10256/livez';

/** Another kube-proxy on the node of a cluster, with the same configuration as ours. */
export class Peer {
  readonly #program: string;
  readonly #cluster: Cluster;
  #child: ChildProcess | undefined;
  #log = '';

  constructor(program: string, cluster: Cluster) {
    this.#program = program;
    this.#cluster = cluster;
  }

  /** Starts it and waits until it is healthy. */
  async start(): Promise<void> {
    const child = spawn(this.#program, ['--config', this.#cluster.writeConfig()], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#child = child;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#log += text;
    });
    const isHealthy = async () => {
      if (await isAnswered(HEALTH_URL)) return true;
      if (child.exitCode !== null) throw new Error(`the other kube-proxy has ended:\n${this.#log}`);
      return false;
    };
    await eventually('the other kube-proxy runs', isHealthy, { everyMs: 20, onTimeout: () => this.#log });
    await this.#cluster.settled();
  }

  /** Ends it. */
  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (!child) return;
    this.#child = undefined;
    child.kill(signal);
    await once(child, 'close');
  }
}

async function isAnswered(url: string): Promise<boolean> {
  try {
    await fetch(url);
    return true;
  } catch {
    return false;
  }
}
