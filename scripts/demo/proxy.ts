import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

/** The program as an operator starts it. */
export const kubeProxy = resolve(import.meta.dirname, '../../bin/kube-proxy');
export const kubeProxyctl = resolve(import.meta.dirname, '../../bin/kube-proxyctl');
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
  /** By frontend; a node port has one per family. */
  readonly #substitutes = new Map<string, readonly Substitute[]>();
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

  /** Takes the name of a frontend (`10.96.0.10:80/TCP`, `:30080/TCP`) and an address of the family that is asked. */
  substitute(frontend: string, address: string): Substitute | undefined {
    const known = this.#substitutes.get(frontend) ?? [];
    return known.find((each) => isIPv6(each) === isIPv6({ address })) ?? known.find(isUnserved);
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
    const substitute = { address: address === '-' ? undefined : address, note };
    const others = (this.#substitutes.get(frontend) ?? []).filter(
      (known) => isIPv6(known) !== isIPv6(substitute) && !isUnserved(known) && !isUnserved(substitute),
    );
    this.#substitutes.set(frontend, [...others, substitute]);
  }
}

function isIPv6({ address }: Pick<Substitute, 'address'>): boolean {
  return address?.startsWith('[') ?? false;
}

function isUnserved({ address }: Substitute): boolean {
  return address === undefined;
}

/** A command prefix that makes the kernel kill the command with this process; empty without `setpriv`. */
function endsWithParent(): string[] {
  const [command, ...options] = ['setpriv', '--pdeathsig', 'KILL', '--'] as const;
  return spawnSync(command, [...options, 'true']).status === 0 ? [command, ...options] : [];
}
