import type { Clock } from '../lib/clock.ts';
import type { CtlFlag, CtlOptions } from './flags.ts';
import type { ReportSource } from './source.ts';
import type { ExitCode, Paint, Terminal } from './terminal.ts';

/** What a command works with. */
export interface CommandContext {
  readonly args: readonly string[];
  readonly options: CtlOptions;
  readonly source: ReportSource;
  readonly terminal: Terminal;
  readonly paint: Paint;
  readonly clock: Clock;
}

/** One thing that kube-proxyctl can do. */
export interface Command {
  readonly name: string;
  /** The arguments, as usage shows them. */
  readonly usage: string;
  readonly arguments: { readonly least: number; readonly most: number };
  /** One line for the list of commands. */
  readonly summary: string;
  /** What its own help says besides. */
  readonly details: string;
  readonly flags: readonly CtlFlag[];
  run(context: CommandContext): Promise<ExitCode>;
}
