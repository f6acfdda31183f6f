import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

export interface ProgramOptions {
  /** Written to standard input piece by piece, as fast as the program takes it. */
  readonly input?: Iterable<string> | AsyncIterable<string>;
  /** Killed after this many milliseconds. */
  readonly timeoutMs: number;
  /** Gets standard output line by line; it is then not part of `output`. */
  readonly onLine?: (line: string) => void;
  /** Called with the process id before any input is written. */
  readonly onStart?: (pid: number) => void;
}

/** How a program ended. */
export interface ProgramEnd {
  /** Exit status; undefined when a signal ended it. */
  readonly status: number | undefined;
  readonly signal?: NodeJS.Signals;
  /** It was ended because it took too long. */
  readonly timedOut: boolean;
  /** What it wrote to standard error, and to standard output unless `onLine` took that. Long output is cut off. */
  readonly output: string;
}

/** Runs programs to their end; a function in tests. Rejects when the program cannot be started. */
export type RunProgram = (
  program: string,
  args: readonly string[],
  options: ProgramOptions,
) => Promise<ProgramEnd>;

/** Output that is kept, and the longest line that is handed on: more is of no use to anybody. */
const maxOutput = 64 << 10;
const maxLine = 1 << 20;
/** Lines are short and many: they go to the pipe in pieces of about its size. */
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
  // A failure to start may come while nobody waits yet.
  ended.catch(() => {});
  return ended;
}

/** A program that ends before it has read everything says why by its status; what is left goes nowhere. */
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

/** Cuts text into lines; stops at the first fault of whoever takes them. */
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
