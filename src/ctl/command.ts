import { type PlainObject, writeYaml } from '../config/write-yaml.ts';
import type { Clock } from '../lib/clock.ts';
import type { CtlFlag, CtlOptions } from './flags.ts';
import type { ReportSource } from './source.ts';
import type { ExitCode, Paint, Terminal } from './terminal.ts';

/** The input of a command, and where it writes. */
export interface CommandContext {
  readonly args: readonly string[];
  readonly options: CtlOptions;
  readonly source: ReportSource;
  readonly terminal: Terminal;
  readonly paint: Paint;
  readonly clock: Clock;
}

/** One command of kube-proxyctl. */
export interface Command {
  readonly name: string;
  /** The arguments, as usage shows them. */
  readonly usage: string;
  readonly arguments: { readonly least: number; readonly most: number };
  /** One line for the list of commands. */
  readonly summary: string;
  /** Further text for the command's own help. */
  readonly details: string;
  readonly flags: readonly CtlFlag[];
  run(context: CommandContext): Promise<ExitCode>;
}

/** Writes a report in the form that --output asks for; `text` makes the form for people. */
export function print({ terminal, options }: CommandContext, report: object, text: () => string): void {
  terminal.stdout.write(options.output === 'table' ? text() : dataText(options.output, report));
}

/** YAML is made from the JSON, so that both leave out what is undefined. */
function dataText(form: 'json' | 'yaml', report: object): string {
  const json = JSON.stringify(report, null, 2);
  return form === 'json' ? `${json}\n` : writeYaml(JSON.parse(json) as PlainObject);
}
