import type { ProgramEnd } from '../program.ts';

/** Exit status of a program that did not get the lock, or of one that the kernel had no room for. */
const RESOURCE_PROBLEM = 4;

/** Texts by which the programs say that a chain or rule is not there. */
const notFoundTexts = [
  'No chain/target/match by that name',
  'No such file or directory',
  'does a matching rule exist',
  'does not exist',
];

/** Texts by which they say that a chain cannot go since rules lead to it: legacy, nft. */
const inUseTexts = ['Too many links', 'Device or resource busy'];

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
    return this.status === RESOURCE_PROBLEM && !this.isInUse;
  }

  /** Rules still lead to the chain that was to be deleted. iptables-nft has no status of its own for it. */
  get isInUse(): boolean {
    return inUseTexts.some((text) => this.output.includes(text));
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
