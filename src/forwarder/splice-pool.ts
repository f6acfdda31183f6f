import type { Sockets } from '../native/sockets.ts';
import type { Admission } from './admission.ts';

/** A pipe that bytes pass through on their way between two sockets. */
export interface Splice {
  readonly input: number;
  readonly output: number;
  /** Bytes in it. */
  held: number;
}

const pipeBytes = 1 << 20;
/** Pipes kept for the next connection, and pipes in use at most: what a pipe holds counts against the user's limit. */
const maxIdle = 16;
const maxInUse = 256;
const filesOfPipe = 2;

/** Pipes for connections that carry much. There may be none left; copying then goes on. */
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

  take(): Splice | undefined {
    if (!this.#isUsable || this.#inUse >= maxInUse) return undefined;
    const splice = this.#idle.pop() ?? this.#open();
    if (splice) this.#inUse++;
    return splice;
  }

  /** One with bytes left in it is of no further use. */
  give(splice: Splice): void {
    this.#inUse--;
    if (splice.held === 0 && this.#idle.length < maxIdle) this.#idle.push(splice);
    else this.#close(splice);
  }

  /** The kernel does not move bytes between such sockets and pipes: nobody need try again. */
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
