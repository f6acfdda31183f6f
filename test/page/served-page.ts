import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { kubeProxyctl } from '../program/run.ts';

/** A running `kube-proxyctl ui`. */
export class ServedPage {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  static start(...args: readonly string[]): Promise<ServedPage> {
    return ServedPage.startThrough([], ...args);
  }

  /** Starts it through a command that changes its rights. */
  static async startThrough(wrapper: readonly string[], ...args: readonly string[]): Promise<ServedPage> {
    const [program = kubeProxyctl, ...rest] = [...wrapper, kubeProxyctl, 'ui', ...args];
    const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface({ input: child.stdout })) {
      const [url] = /http:\/\/127\.0\.0\.1:\d+\//.exec(line) ?? [];
      if (url !== undefined) return new ServedPage(url, child);
    }
    throw new Error('kube-proxyctl ui ended without an address');
  }

  /** Returns the signal that ended it. */
  async stop(signal: NodeJS.Signals = 'SIGINT'): Promise<unknown> {
    const ended = once(this.#child, 'exit');
    this.#child.kill(signal);
    return (await ended)[1];
  }
}
