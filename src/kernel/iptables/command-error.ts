import type { ProgramEnd } from '../program.ts';

/** Exit status of a program that did not get the lock, or for which the kernel lacked memory. */
const RESOURCE_PROBLEM = 4;

/** The programs (legacy, nft) print one of these when a chain cannot be deleted because rules jump to it. */
const inUseTexts = ['Too many links', 'Device or resource busy'];

/** An iptables program failed; has its output. */
export class CommandError extends Error {
  readonly code = 'ERR_IPTABLES_COMMAND';
  readonly program: string;
  /** Undefined when a signal ended it. */
  readonly status: number | undefined;
  readonly output: string;

  constructor(program: string, args: readonly string[], end: ProgramEnd) {
    const output = end.output.trim();
    super(`${[program, ...args].join(' ')}: ${howItEnded(end)}${output === '' ? '' : `: ${output}`}`);
    this.name = 'CommandError';
    this.program = program;
    this.status = end.status;
    this.output = output;
  }

  /** The program did not get the lock, or the kernel lacked memory. The command itself may be correct: retry it. */
  get isResourceProblem(): boolean {
    return this.status === RESOURCE_PROBLEM && !this.isInUse;
  }

  /** Rules still jump to the chain to delete. iptables-nft has no exit status of its own for it. */
  get isInUse(): boolean {
    return inUseTexts.some((text) => this.output.includes(text));
  }
}

/** A program is not installed. */
export class MissingProgramError extends Error {
  readonly code = 'ERR_IPTABLES_MISSING';
  readonly program: string;

  constructor(program: string, cause: unknown) {
    super(`${program} is not installed: there is no such program in the PATH`, { cause });
    this.name = 'MissingProgramError';
    this.program = program;
  }
}

function howItEnded({ status, signal, timedOut }: ProgramEnd): string {
  if (timedOut) return 'took too long and was killed';
  return status === undefined ? `ended by ${signal}` : `exit status ${status}`;
}

/** Lines of context before and after a line that iptables-restore refused. */
const context = 3;

/** The lines of restore input around the one that an error of iptables-restore names; empty when it names none. */
export function linesAround(input: string, message: string): readonly string[] {
  const named = Number(/\bline:? (\d+)/.exec(message)?.[1]);
  if (!Number.isSafeInteger(named) || named < 1) return [];
  return input.split('\n').slice(Math.max(0, named - 1 - context), named + context);
}
