import { type ChildProcess, spawn } from 'node:child_process';

/** A program that changes rules again and again until it is stopped, but never for longer than a minute. */
export class Fighter {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(command: string, ...args: readonly string[]) {
    this.#child = spawn('timeout', ['60', command, ...args], { stdio: 'ignore' });
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Runs a command of nft in a loop. */
  static nft(command: string): Fighter {
    return new Fighter('sh', '-c', `while :; do nft ${command}; done`);
  }

  /** `timeout` passes the signal on to everything that it started. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    await this.#ended;
  }
}
