import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

/** The program as an operator starts it. */
export const kubeProxy = resolve(import.meta.dirname, '../../bin/kube-proxy');
/** The proxy should end at once; after this time it is killed. */
const lastResortMs = 3_000;
/** A row of the table that userspace mode logs when it cannot listen at the service addresses themselves. */
const tableRow = /^\t\S+ +(\S+\/(?:TCP|UDP|SCTP)) +(\S+)(?: +(.*))?$/;

/** Where a frontend is served instead. Without an address it is not served, and the note says why. */
export interface Substitute {
  readonly address: string | undefined;
  readonly note: string;
}

/** The running kube-proxy. Its log goes to stderr. */
export class RunningProxy {
  readonly #child: ChildProcess;
  readonly #substitutes = new Map<string, Substitute>();
  /** Its exit code or the signal that ended it. */
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
    // The proxy must not outlive this process.
    process.on('exit', () => child.kill('SIGKILL'));
  }

  /** Takes the name of a frontend: `10.96.0.10:80/TCP`, `:30080/TCP`. */
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

/** A command prefix that makes the kernel kill the command with this process; empty without `setpriv`. */
function endsWithParent(): string[] {
  const [command, ...options] = ['setpriv', '--pdeathsig', 'KILL', '--'] as const;
  return spawnSync(command, [...options, 'true']).status === 0 ? [command, ...options] : [];
}
