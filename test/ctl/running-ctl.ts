import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { kubeProxyctl } from '../program/run.ts';

/** A kube-proxyctl that runs until it is interrupted. */
export class RunningCtl {
  readonly #child: ChildProcess;
  stdout = '';
  stderr = '';

  constructor(args: readonly string[]) {
    this.#child = spawn(kubeProxyctl, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
  }

  /** The complete lines so far. */
  lines(): string[] {
    return this.stdout.split('\n').slice(0, -1);
  }

  /** Interrupts it and waits for its end. */
  async interrupt(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGINT');
    await ended;
  }
}
