import { type PlainObject, writeYaml } from '../config/write-yaml.ts';
import type { Clock } from '../lib/clock.ts';
import { type CtlFlag, type CtlOptions, isTable } from './flags.ts';
import type { ReportSource } from './source.ts';
import type { Layout } from './table.ts';
import type { ExitCode, Paint, Terminal } from './terminal.ts';

/** The input of a command, and where it writes. */
export interface CommandContext {
  readonly args: readonly string[];
  readonly options: CtlOptions;
  readonly source: ReportSource;
  readonly terminal: Terminal;
  readonly paint: Paint;
  readonly layout: Layout;
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
  /** Whether -o name is possible. */
  readonly hasNames: boolean;
  run(context: CommandContext): Promise<ExitCode>;
}

/**
 * Writes a report in the form that --output asks for. `text` makes the form for people; `names`, where the command has
 * names, what -o name prints.
 */
export function print(
  { terminal, options }: CommandContext,
  report: object,
  text: () => string,
  names: () => readonly string[] = () => [],
): void {
  const { output } = options;
  if (isTable(output)) terminal.stdout.write(text());
  else if (output === 'name') terminal.stdout.write(namesText(names()));
  else terminal.stdout.write(dataText(output, report));
}

/** Each name once, one per line. */
export function namesText(names: readonly string[]): string {
  return [...new Set(names)].map((name) => `${name}\n`).join('');
}

/** YAML is made from the JSON, so that both leave out what is undefined. */
export function dataText(form: 'json' | 'yaml', report: object, indent = 2): string {
  const json = JSON.stringify(report, null, indent);
  return form === 'json' ? `${json}\n` : writeYaml(JSON.parse(json) as PlainObject);
}
