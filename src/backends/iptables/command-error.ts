import type { ProgramEnd } from '../../kernel/program.ts';

/** Texts by which the programs say that a chain or rule is not there. */
const notFoundTexts = [
  'No chain/target/match by that name',
  'No such file or directory',
  'does a matching rule exist',
  'does not exist',
];

/** An iptables program that failed, with its own words. */
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

  /** The lock was not to be had, or the kernel was out of something: nothing is said about the command itself. */
  get isResourceProblem(): boolean {
    return this.status === 4;
  }

  /** What the command names is not there. */
  get isNotFound(): boolean {
    return notFoundTexts.some((text) => this.output.includes(text));
  }
}

/** A program that this machine does not have. */
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
  if (timedOut) return 'took too long and was ended';
  return status === undefined ? `ended by ${signal}` : `exit status ${status}`;
}
