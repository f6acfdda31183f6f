import type { Clock } from '../../lib/clock.ts';
import { sleep } from '../../lib/sleep.ts';
import { hasCode } from '../../lib/thrown.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProgramEnd, ProgramOptions, RunProgram } from '../program.ts';
import { CommandError, MissingProgramError } from './command-error.ts';

/** The tables that the modes write to. */
export type AnyTable = 'mangle' | 'nat' | 'filter';

/** Learns which processes write rules for us, so that their changes are not mistaken for another program's. */
export interface WriterObserver {
  /** Called before the process can have written anything. */
  writerStarted(pid: number): void;
  writerEnded(pid: number): void;
}

export interface CommandsOptions {
  readonly family: Family;
  readonly run: RunProgram;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer?: WriterObserver;
  /** The variant of the programs, such as `iptables-legacy`; plain `iptables` of the PATH when absent. */
  readonly variant?: 'legacy' | 'nft';
}

const lockAttempts = 3;
const lockPauseMs = 200;
const timeoutMs = 5 * 60_000;
/** The program waits up to 5 seconds for the lock. */
const wait = ['-w', '5'];
const restoreArguments = [...wait, '--noflush', '--counters'];

/** Input that can be read again when a command is retried. */
interface RepeatableOptions extends Pick<ProgramOptions, 'onLine'> {
  readonly input?: readonly string[];
}

/**
 * The iptables programs of one family. Rejects with CommandError, or MissingProgramError when the program is not
 * installed. A command that fails because another program holds the lock is tried three times.
 */
export class Commands {
  readonly family: Family;
  readonly #options: CommandsOptions;
  readonly #base: string;

  constructor(options: CommandsOptions) {
    this.family = options.family;
    this.#options = options;
    const name = options.family === 'IPv4' ? 'iptables' : 'ip6tables';
    this.#base = options.variant ? `${name}-${options.variant}` : name;
  }

  /** Name of the family's program, or of its companion `save` or `restore`. */
  program(companion?: 'save' | 'restore'): string {
    return companion ? `${this.#base}-${companion}` : this.#base;
  }

  /** The program's version line: `iptables v1.8.9 (nf_tables)`. */
  async version(): Promise<string> {
    const { output } = await this.#succeed(this.program(), ['--version']);
    return output.trim();
  }

  /** Creates a chain; returns false when it existed. */
  async createChain(table: AnyTable, chain: string): Promise<boolean> {
    const args = [...wait, '-N', chain, '-t', table];
    return (await this.#statusOf(this.program(), args, 'write', [0, 1])) === 0;
  }

  /** Creates a chain in several tables, with one program; empties it where it exists. */
  async createEmptyChain(tables: readonly AnyTable[], chain: string): Promise<void> {
    const input = tables.map((table) => `*${table}\n:${chain} - [0:0]\nCOMMIT\n`);
    await this.#succeed(this.program('restore'), restoreArguments, 'write', { input });
  }

  async chainExists(table: AnyTable, chain: string): Promise<boolean> {
    const args = [...wait, '-S', chain, '-t', table];
    return (await this.#statusOf(this.program(), args, 'read', [0, 1])) === 0;
  }

  /** The `-A` lines of a chain. */
  async rules(table: AnyTable, chain: string): Promise<string[]> {
    const lines: string[] = [];
    const onLine = (line: string) => void lines.push(line);
    await this.#succeed(this.program(), [...wait, '-S', chain, '-t', table], 'read', { onLine });
    return lines.filter((line) => line.startsWith('-A '));
  }

  async ruleExists(table: AnyTable, chain: string, rule: readonly string[]): Promise<boolean> {
    const args = [...wait, '-C', chain, '-t', table, ...rule];
    return (await this.#statusOf(this.program(), args, 'read', [0, 1])) === 0;
  }

  /** Inserts a rule as the first of its chain. */
  async insertRule(table: AnyTable, chain: string, rule: readonly string[]): Promise<void> {
    await this.#succeed(this.program(), [...wait, '-I', chain, '-t', table, ...rule], 'write');
  }

  /**
   * Passes on the lines of a dump of a table, or of all tables that exist: legacy programs create a table that they are
   * asked to dump.
   */
  async save(table: AnyTable | 'all', onLine: (line: string) => void): Promise<void> {
    const args = table === 'all' ? [] : ['-t', table];
    await this.#succeed(this.program('save'), args, 'read', { onLine });
  }

  /** Chains named KUBE-… in all tables. */
  async kubernetesChains(): Promise<Set<string>> {
    const chains = new Set<string>();
    const onLine = (line: string) => {
      const [, chain] = /^:(KUBE-[^ ]+) /.exec(line) ?? [];
      if (chain !== undefined) chains.add(chain);
    };
    await this.save('all', onLine);
    return chains;
  }

  /**
   * Applies restore input to one table or to all tables in it, without flushing other chains. Does not retry, because
   * the input can be read only once.
   */
  async restore(input: Iterable<string>, table?: AnyTable): Promise<void> {
    const args = table ? [...restoreArguments, '-T', table] : restoreArguments;
    const end = await this.#start(this.program('restore'), args, 'write', { input });
    if (end.status !== 0) throw new CommandError(this.program('restore'), args, end);
  }

  async #succeed(
    program: string,
    args: readonly string[],
    access: 'read' | 'write' = 'read',
    options: RepeatableOptions = {},
  ): Promise<ProgramEnd> {
    const end = await this.#runWithRetry(program, args, access, options);
    if (end.status !== 0) throw new CommandError(program, args, end);
    return end;
  }

  /** Runs a command whose exit status is the answer. Rejects for a status that is not expected. */
  async #statusOf(
    program: string,
    args: readonly string[],
    access: 'read' | 'write',
    expected: readonly number[],
  ): Promise<number> {
    const end = await this.#runWithRetry(program, args, access, {});
    if (end.status !== undefined && expected.includes(end.status)) return end.status;
    throw new CommandError(program, args, end);
  }

  /** Runs a command, and again while another program holds the lock. */
  async #runWithRetry(
    program: string,
    args: readonly string[],
    access: 'read' | 'write',
    options: RepeatableOptions,
  ): Promise<ProgramEnd> {
    const { clock, logger, family } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const end = await this.#start(program, args, access, options);
      if (attempt === lockAttempts || !new CommandError(program, args, end).isResourceProblem) return end;
      const command = [program, ...args].join(' ');
      logger.info('iptables is busy; trying again', { ipFamily: family, command, output: end.output.trim() });
      await sleep(clock, lockPauseMs * attempt);
    }
  }

  async #start(
    program: string,
    args: readonly string[],
    access: 'read' | 'write',
    options: Pick<ProgramOptions, 'onLine' | 'input'>,
  ): Promise<ProgramEnd> {
    const { run, observer } = this.#options;
    let writer: number | undefined;
    const onStart = (pid: number) => {
      writer = pid;
      observer?.writerStarted(pid);
    };
    try {
      return await run(program, args, { ...options, timeoutMs, ...(access === 'write' && { onStart }) });
    } catch (error) {
      if (isMissing(error)) throw new MissingProgramError(program, error);
      throw error;
    } finally {
      if (writer !== undefined) observer?.writerEnded(writer);
    }
  }
}

function isMissing(error: unknown): boolean {
  return hasCode(error, 'ENOENT') && 'syscall' in error;
}
