import type { Sockets } from '../native/sockets.ts';
import type { Admission } from './admission.ts';

/** A pipe through which splice(2) moves bytes between two sockets. */
export interface Splice {
  readonly input: number;
  readonly output: number;
  /** Bytes in it. */
  held: number;
}

const pipeBytes = 1 << 20;
/** Idle pipes to keep, and most pipes in use: the kernel limits the pipe memory of a user. */
const maxIdle = 16;
const maxInUse = 256;
const filesOfPipe = 2;

/** Pipes for bulk transfers. */
export class SplicePool {
  readonly #sockets: Sockets;
  readonly #admission: Admission;
  readonly #idle: Splice[] = [];
  #inUse = 0;
  #isUsable = true;

  constructor(sockets: Sockets, admission: Admission) {
    this.#sockets = sockets;
    this.#admission = admission;
  }

  /** Returns undefined when no pipe is available; the caller then copies. */
  take(): Splice | undefined {
    if (!this.#isUsable || this.#inUse >= maxInUse) return undefined;
    const splice = this.#idle.pop() ?? this.#open();
    if (splice) this.#inUse++;
    return splice;
  }

  /** Takes a pipe back. One with bytes left in it is closed. */
  give(splice: Splice): void {
    this.#inUse--;
    if (splice.held === 0 && this.#idle.length < maxIdle) this.#idle.push(splice);
    else this.#close(splice);
  }

  /** Called when the kernel does not support splice on these sockets: from now on `take` returns undefined. */
  disable(): void {
    this.#isUsable = false;
  }

  close(): void {
    for (const splice of this.#idle.splice(0)) this.#close(splice);
  }

  #open(): Splice | undefined {
    const pipe = this.#admission.hasPlenty ? this.#sockets.pipe(pipeBytes) : undefined;
    if (!pipe) return undefined;
    this.#admission.enter(filesOfPipe);
    return { output: pipe[0], input: pipe[1], held: 0 };
  }

  #close({ input, output }: Splice): void {
    this.#sockets.close(input);
    this.#sockets.close(output);
    this.#admission.leave(filesOfPipe);
  }
}
