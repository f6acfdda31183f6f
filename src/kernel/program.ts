import { once } from 'node:events';
import { accessSync, constants, realpathSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants as systemConstants } from 'node:os';
import { delimiter, join } from 'node:path';
import { loadStartProgram, type StartProgram } from '../native/start-program.ts';

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

/** The file that a program of the PATH is, behind all links; undefined when there is none. */
export function programFile(program: string): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, program);
    try {
      accessSync(path, constants.X_OK);
      return realpathSync(path);
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

let starter: Promise<StartProgram> | undefined;

/** Starts a program of the PATH directly, without a shell, with the environment of this process. */
export const runProgram: RunProgram = async (program, args, options) => {
  const { input, onLine, onStart, timeoutMs } = options;
  starter ??= loadStartProgram();
  const start = await starter;
  const child = start(program, args, input !== undefined);
  onStart?.(child.pid);
  let [timedOut, hasEnded] = [false, false];
  // After its end, another process may have its pid.
  const kill = () => !hasEnded && process.kill(child.pid, 'SIGKILL');
  const timer = setTimeout(() => {
    timedOut = kill();
  }, timeoutMs);
  const kept = new KeptOutput();
  const faults: unknown[] = [];
  const fail = (error: unknown) => {
    faults.push(error);
    kill();
  };
  const lines = onLine && new Lines(onLine, fail);
  const silent = Promise.all([
    readTexts(child.output, (text) => (lines ?? kept).add(text)),
    readTexts(child.errors, (text) => kept.add(text)),
  ]);
  if (input && child.input !== undefined) await feed(child.input, input).catch(fail);
  await silent;
  const status = await child.ended().finally(() => clearTimeout(timer));
  hasEnded = true;
  lines?.end();
  if (faults.length > 0) throw faults[0];
  return { ...endOf(status), timedOut, output: kept.text };
};

/** Resolves when the other end was closed. */
async function readTexts(fd: number, take: (text: string) => void): Promise<void> {
  const stream = new Socket({ fd, readable: true, writable: false }).setEncoding('utf8');
  // The program's status says what went wrong.
  stream.on('error', () => stream.destroy());
  stream.on('data', take);
  await new Promise<void>((resolve) => stream.once('close', () => resolve()));
}

/** Reads a wait status: the low byte has the signal that ended the program, the next one its exit status. */
function endOf(waitStatus: number): Pick<ProgramEnd, 'status' | 'signal'> {
  const number = waitStatus & 0x7f;
  if (number === 0) return { status: (waitStatus >> 8) & 0xff };
  const signal = Object.entries(systemConstants.signals).find(([, value]) => value === number)?.[0];
  return { status: undefined, ...(signal !== undefined && { signal: signal as NodeJS.Signals }) };
}

/** Writes input until the program closes its standard input; then its exit status says why, and the rest is dropped. */
async function feed(fd: number, input: Iterable<string> | AsyncIterable<string>): Promise<void> {
  const stdin = new Socket({ fd, readable: false, writable: true });
  const closed = new Promise<void>((resolve) => {
    stdin.on('error', () => resolve());
    stdin.on('close', () => resolve());
  });
  try {
    await pour(input, stdin, closed);
    stdin.end();
  } catch (error) {
    stdin.destroy();
    throw error;
  }
}

async function pour(
  input: Iterable<string> | AsyncIterable<string>,
  stdin: Socket,
  closed: Promise<void>,
): Promise<void> {
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
