import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

/** The program as an operator starts it. */
export const kubeProxy = resolve(import.meta.dirname, '../../bin/kube-proxy');
/** It ends at once when it is asked to; this is for the case that it does not. */
const lastResortMs = 3_000;
/** A row of the table that userspace mode logs when it cannot have the service addresses themselves. */
const tableRow = /^\t\S+ +(\S+\/(?:TCP|UDP|SCTP)) +(\S+)(?: +(.*))?$/;

/** Where a frontend is served instead; no address when it is not, for the reason in the note. */
export interface Substitute {
  readonly address: string | undefined;
  readonly note: string;
}

/** The running kube-proxy. Its log goes on to that of this process. */
export class RunningProxy {
  readonly #child: ChildProcess;
  readonly #substitutes = new Map<string, Substitute>();
  /** How it ended: its exit code or the signal. */
  readonly ended: Promise<number | NodeJS.Signals>;

  constructor(flags: readonly string[]) {
    const [command = kubeProxy, ...args] = [...endsWithParent(), kubeProxy, ...flags];
    const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'pipe'] });
    this.#child = child;
    this.ended = new Promise((settle, reject) => {
      child.on('error', reject);
      child.on('exit', (code, signal) => settle(signal ?? code ?? 1));
    });
    createInterface({ input: child.stderr }).on('line', (line) => {
      this.#noteRow(line);
      console.error(line);
    });
    // However this process ends, the proxy does not outlive it.
    process.on('exit', () => child.kill('SIGKILL'));
  }

  /** By the name of the frontend, such as `10.96.0.10:80/TCP` or `:30080/TCP`. */
  substitute(frontend: string): Substitute | undefined {
    return this.#substitutes.get(frontend);
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), lastResortMs);
    await this.ended;
    clearTimeout(timer);
  }

  #noteRow(line: string): void {
    const [, frontend, address, note = ''] = tableRow.exec(line) ?? [];
    if (frontend === undefined) return;
    this.#substitutes.set(frontend, { address: address === '-' ? undefined : address, note });
  }
}

/** A command in front of another that has the kernel kill it when this process dies; none where there is no such. */
function endsWithParent(): string[] {
  const [command, ...options] = ['setpriv', '--pdeathsig', 'KILL', '--'] as const;
  return spawnSync(command, [...options, 'true']).status === 0 ? [command, ...options] : [];
}
