import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { kubeProxyctl } from '../program/run.ts';

/** A kube-proxyctl that runs until it is interrupted. */
export class RunningCtl {
  readonly #child: ChildProcess;
  stdout = '';
  stderr = '';

  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.#child = spawn(kubeProxyctl, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
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

  /** Interrupts it and waits for its end. Returns the signal that ended it. */
  async interrupt(): Promise<NodeJS.Signals | null> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return signalCode;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGINT');
    await ended;
    return this.#child.signalCode;
  }
}
