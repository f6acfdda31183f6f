import { type PlainObject, writeYaml } from '../config/write-yaml.ts';
import type { Clock } from '../lib/clock.ts';
import { type CtlFlag, type CtlOptions, commonFlags, helpFlag, isTable } from './flags.ts';
import type { ProgramName } from './program-name.ts';
import type { ReportSource } from './source.ts';
import type { Layout } from './table.ts';
import { type ExitCode, harmless, type Paint, type Terminal } from './terminal.ts';

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

/** What help and the command line need to know of a command. */
export interface CommandSyntax {
  readonly name: string;
  /** The arguments, as usage shows them. */
  readonly usage: string;
  readonly arguments: { readonly least: number; readonly most: number };
  /** One line for the list of commands. */
  readonly summary: string;
  /** Further text for the command's own help. */
  readonly details: string;
  readonly flags: readonly CtlFlag[];
  /** What each argument can be completed to. */
  readonly completes: readonly Completed[];
}

/** What an argument means, for shell completion. */
export type Completed = 'service' | 'source' | 'command' | 'shell';

/** A command that shows something of a proxy. */
export interface Command extends CommandSyntax {
  /** Whether -o name is possible. */
  readonly hasNames: boolean;
  /** It works on the node only, because it changes or follows something there: not with -N. */
  readonly runsOnNode?: boolean;
  run(context: CommandContext): Promise<ExitCode>;
}

/** A command about kube-proxyctl itself. It asks no proxy, and takes no flags but --help. */
export interface LocalCommand extends CommandSyntax {
  readonly flags: readonly [];
  /** The text to print. `width` is that of the terminal, if there is one. */
  textOf(args: readonly string[], width: number | undefined, program: ProgramName): string;
}

export type AnyCommand = Command | LocalCommand;

export function isLocal(command: AnyCommand): command is LocalCommand {
  return 'textOf' in command;
}

/** The flags that a command takes, those of every command last. */
export function flagsOf(command: AnyCommand): readonly CtlFlag[] {
  return isLocal(command) ? [helpFlag] : [...command.flags, ...commonFlags];
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
  return [...new Set(names)].map((name) => `${harmless(name)}\n`).join('');
}

/** YAML is made from the JSON, so that both leave out what is undefined. */
export function dataText(form: 'json' | 'yaml', report: object, indent = 2): string {
  const json = JSON.stringify(report, null, indent);
  return form === 'json' ? `${escapeControls(json)}\n` : writeYaml(JSON.parse(json) as PlainObject);
}

/** JSON.stringify escapes only the control characters of ASCII, and not all of these. */
function escapeControls(json: string): string {
  return json.replace(/(?!\n)\p{Cc}/gu, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
