import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** CPU time in ms of the program and its children: in user space, and in the kernel on their behalf. */
export interface Cpu {
  readonly own: number;
  readonly kernel: number;
}

const msPerTick = 10;
/** The kube-proxy of this repository. */
export const ownProgram = resolve(import.meta.dirname, '../../bin/kube-proxy');

/** A kube-proxy that runs, seen from outside. */
export class Program {
  readonly #child: ChildProcess;

  /** `through` is a command that runs the one that follows it, in another place or with limits. */
  constructor(path: string, config: string, args: readonly string[] = [], through: readonly string[] = []) {
    const [program = '', ...rest] = [...through, path, '--config', config, ...args];
    this.#child = spawn(program, rest, { stdio: 'ignore' });
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  cpu(): Cpu {
    return cpuOf(this.#child.pid);
  }

  /** Resident memory in MB: now, and the peak so far. */
  memory(): { readonly now: number; readonly peak: number } {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8');
    const read = (field: string): number =>
      Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024;
    return { now: read('VmRSS'), peak: read('VmHWM') };
  }

  /** Ends the program; its rules stay in the kernel. */
  async stop(): Promise<void> {
    if (this.hasEnded) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'close');
  }
}

export function cpuOf(pid: number | undefined): Cpu {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  // utime, stime, cutime, cstime. The first two fields, pid and name, were cut off at the parenthesis.
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15).map(Number);
  return { own: (user + childUser) * msPerTick, kernel: (system + childSystem) * msPerTick };
}

/** Removes the rules of an earlier program in any mode. */
export function removeRules(): void {
  spawnSync(ownProgram, ['--cleanup']);
}

export function cpuSince(earlier: Cpu, later: Cpu): Cpu {
  return { own: later.own - earlier.own, kernel: later.kernel - earlier.kernel };
}
