import { type ChildProcess, spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { ControlGroup } from './control-group.ts';

/** What a program has to bear. */
export const hardships = ['10 % of a core', 'eight busy loops'] as const;
export type Hardship = (typeof hardships)[number];

const coreShare = 0.1;
const loops = 8;
/** Loops end by themselves after this time, even if nobody stops them. */
const loopSeconds = 1800;
/** Of the API server and the clients here, which on a real node run elsewhere. */
const highPriority = -10;
/** Back to normal for a child of a process with high priority. */
const normalPriority = ['nice', '-n', String(-highPriority)];

/** A program's control group under a hardship, until `end`. */
export class Ordeal {
  readonly group: ControlGroup;
  /** The command that runs the program. */
  readonly through: readonly string[];
  readonly #loops: ChildProcess[] = [];

  /** Throws an error that says why this machine cannot have the hardship. */
  constructor(hardship: Hardship) {
    setPriority(highPriority);
    this.group = new ControlGroup(
      `kpt-bench-${process.pid}`,
      hardship === '10 % of a core' ? coreShare : undefined,
    );
    this.through = [...normalPriority, ...this.group.through];
    if (hardship !== 'eight busy loops') return;
    const command = ['timeout', String(loopSeconds), 'sh', '-c', 'while :; do :; done'];
    const [program = '', ...args] = [...normalPriority, ...command];
    for (let i = 0; i < loops; i++) {
      this.#loops.push(spawn(program, args, { stdio: 'ignore', detached: true }));
    }
  }

  /** To be called after the program has ended. */
  async end(): Promise<void> {
    for (const { pid } of this.#loops) if (pid !== undefined) process.kill(-pid, 'SIGKILL');
    await this.group.remove();
  }
}
