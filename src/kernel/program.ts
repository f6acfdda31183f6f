import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

export interface ProgramOptions {
  /** Written to standard input in pieces, as fast as the program reads. */
  readonly input?: Iterable<string> | AsyncIterable<string>;
  /** Killed after this many milliseconds. */
  readonly timeoutMs: number;
  /** Receives standard output line by line; `output` then lacks it. */
  readonly onLine?: (line: string) => void;
  /** Called with the process id before any input is written. */
  readonly onStart?: (pid: number) => void;
}

/** How a program ended, and its output. */
export interface ProgramEnd {
  /** Exit status; undefined when a signal ended it. */
  readonly status: number | undefined;
  readonly signal?: NodeJS.Signals;
  /** The program was killed because it exceeded `timeoutMs`. */
  readonly timedOut: boolean;
  /** Standard error, and without `onLine` also standard output. Long output is cut off. */
  readonly output: string;
}

/** Runs a program until it ends. Rejects when it cannot be started. Tests pass a function of their own. */
export type RunProgram = (
  program: string,
  args: readonly string[],
  options: ProgramOptions,
) => Promise<ProgramEnd>;

/** Output is cut off at the first limit; a line beyond the second is an error. */
const maxOutput = 64 << 10;
const maxLine = 1 << 20;
/** Many short lines are joined into pieces of about the size of a pipe. */
const inputPiece = 64 << 10;

/** Starts a program of the PATH directly, without a shell, with the environment of this process. */
export const runProgram: RunProgram = async (program, args, options) => {
  const { input, onLine, onStart, timeoutMs } = options;
  const child = spawn(program, args, { stdio: [input ? 'pipe' : 'ignore', 'pipe', 'pipe'] });
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = child.kill('SIGKILL');
  }, timeoutMs);
  const ended = endOf(child);
  const kept = new KeptOutput();
  const faults: unknown[] = [];
  const fail = (error: unknown) => {
    faults.push(error);
    child.kill('SIGKILL');
  };
  const lines = onLine && new Lines(onLine, fail);
  child.stderr?.setEncoding('utf8').on('data', (text: string) => kept.add(text));
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (lines ?? kept).add(text));
  if (child.pid !== undefined) {
    onStart?.(child.pid);
    if (input) await feed(child, input).catch(fail);
  }
  const { status, signal } = await ended.finally(() => clearTimeout(timer));
  lines?.end();
  if (faults.length > 0) throw faults[0];
  return { status: status ?? undefined, ...(signal && { signal }), timedOut, output: kept.text };
};

function endOf(child: ChildProcess): Promise<{ status: number | null; signal: NodeJS.Signals | null }> {
  const ended = new Promise<{ status: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status, signal) => resolve({ status, signal }));
  });
  // The program may fail to start before the caller awaits this promise.
  ended.catch(() => {});
  return ended;
}

/** Writes input until the program closes its standard input; then its exit status says why, and the rest is dropped. */
async function feed(child: ChildProcess, input: Iterable<string> | AsyncIterable<string>): Promise<void> {
  const { stdin } = child;
  if (!stdin) return;
  const closed = new Promise<void>((resolve) => {
    stdin.on('error', () => resolve());
    stdin.on('close', () => resolve());
  });
  let piece: string[] = [];
  let length = 0;
  const write = async () => {
    const hasRoom = stdin.write(piece.join(''));
    piece = [];
    length = 0;
    if (!hasRoom) await Promise.race([once(stdin, 'drain').catch(() => {}), closed]);
  };
  for await (const text of input) {
    if (stdin.destroyed) return;
    piece.push(text);
    length += text.length;
    if (length >= inputPiece) await write();
  }
  if (length > 0 && !stdin.destroyed) await write();
  stdin.end();
}

class KeptOutput {
  #text = '';
  #isCut = false;

  get text(): string {
    return this.#isCut ? `${this.#text}… (cut off)` : this.#text;
  }

  add(text: string): void {
    const room = maxOutput - this.#text.length;
    if (text.length > room) this.#isCut = true;
    if (room > 0) this.#text += text.slice(0, room);
  }
}

/** Splits text into lines; stops at the first error that `onLine` throws. */
class Lines {
  readonly #onLine: (line: string) => void;
  readonly #onFault: (error: unknown) => void;
  #rest = '';
  #isFaulty = false;

  constructor(onLine: (line: string) => void, onFault: (error: unknown) => void) {
    this.#onLine = onLine;
    this.#onFault = onFault;
  }

  add(text: string): void {
    if (this.#isFaulty) return;
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    try {
      for (const line of lines) this.#onLine(line);
      if (this.#rest.length > maxLine) throw new Error(`a line of output exceeds ${maxLine} characters`);
    } catch (error) {
      this.#isFaulty = true;
      this.#onFault(error);
    }
  }

  end(): void {
    if (this.#rest !== '') this.add('\n');
  }
}
