import { parseFlags } from '../cli/flag-set.ts';
import { UsageError } from '../cli/usage-error.ts';
import { systemClock } from '../lib/clock.ts';
import { toMillis } from '../lib/duration.ts';
import { quote } from '../lib/go-quote.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Logger } from '../obs/log.ts';
import type { Command } from './command.ts';
import { commands } from './commands.ts';
import { allFlags, type CtlOptions, commonFlags, defaultOptions, isWithoutProxy } from './flags.ts';
import { commandHelp, programHelp } from './help.ts';
import { serverAddress } from './server-address.ts';
import { serverSource } from './server-source.ts';
import type { ReportSource } from './source.ts';
import type { Layout } from './table.ts';
import { EXIT_ERROR, EXIT_OK, type ExitCode, painter, type Terminal } from './terminal.ts';
import { clientVersion, programText } from './version.ts';

/** Runs kube-proxyctl with these arguments and sets the exit code. */
export async function main(args: string[], terminal: Terminal = process): Promise<void> {
  if (terminal === process) exitWithReader();
  try {
    terminal.exitCode = await run(args, terminal);
  } catch (error) {
    const hint = error instanceof UsageError ? '; see kube-proxyctl --help' : '';
    terminal.stderr.write(`Error: ${messageOf(error)}${hint}\n`);
    terminal.exitCode = EXIT_ERROR;
  }
}

/** Exits when the reader of a pipe is gone, as in `kube-proxyctl services | head`. */
function exitWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(EXIT_OK);
  });
}

async function run(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const parsed = parseFlags(allFlags, argv);
  const options: CtlOptions = { ...defaultOptions };
  parsed.writeTo(options);
  const [name, ...args] = parsed.positionals;
  const command = name === undefined ? undefined : commandOf(name);
  if (options.help) {
    terminal.stdout.write(command ? commandHelp(command) : programHelp(commands));
    return EXIT_OK;
  }
  if (options.version) {
    if (name !== undefined) throw usageError(`--version takes no command, got ${quote(name)}`);
    terminal.stdout.write(`kube-proxyctl of ${programText(clientVersion())}\n`);
    return EXIT_OK;
  }
  if (!command) throw usageError('a command is needed');
  check(command, args, options, parsed.changed);
  const source = await openSource(command, options, terminal);
  try {
    return await command.run({
      args,
      options,
      source,
      terminal,
      paint: painter(terminal),
      layout: layoutOf(options, terminal),
      clock: systemClock,
    });
  } finally {
    await source.close();
  }
}

function commandOf(name: string): Command {
  const command = commands.find((known) => known.name === name);
  if (!command) throw usageError(`unknown command ${quote(name)}`);
  return command;
}

/** Throws when the command does not take these arguments or flags. */
function check(
  command: Command,
  args: readonly string[],
  options: CtlOptions,
  given: ReadonlySet<string>,
): void {
  const { least, most } = command.arguments;
  if (args.length < least || args.length > most) {
    const wanted = command.usage === '' ? 'no arguments' : command.usage;
    throw usageError(`${command.name} takes ${wanted}, got ${args.map(quote).join(' ') || 'none'}`);
  }
  if (options.output === 'name' && !command.hasNames) throw usageError(`${command.name} has no -o name`);
  const known = new Set([...command.flags, ...commonFlags].map(({ name }) => name));
  const stray = [...given].find((name) => !known.has(name));
  if (stray !== undefined) throw usageError(`${command.name} has no flag --${stray}`);
  checkTogether(command, given);
}

/** The flags that mean an answer without a proxy. */
const offlineNames = ['without-proxy', 'manifests', 'kubeconfig'] as const;

/** Throws when flags do not go together. */
function checkTogether(command: Command, given: ReadonlySet<string>): void {
  const pacing = ['interval', 'count'].find((name) => given.has(name));
  const mayWatch = command.flags.some(({ name }) => name === 'watch');
  if (pacing !== undefined && mayWatch && !given.has('watch')) throw usageError(`--${pacing} needs --watch`);
  const offline = offlineNames.find((name) => given.has(name));
  const needy = ['node', 'proxy-mode'].find((name) => given.has(name));
  if (needy !== undefined && offline === undefined) {
    throw usageError(`--${needy} needs --without-proxy, --manifests or --kubeconfig`);
  }
  if (given.has('proxy-mode') && given.has('config')) {
    throw usageError('--proxy-mode has no effect with --config, which sets the mode');
  }
  if (given.has('manifests') && given.has('kubeconfig')) {
    throw usageError('--manifests and --kubeconfig exclude each other');
  }
  if (offline === undefined) return;
  const live = ['live', 'watch'].find((name) => given.has(name));
  if (live !== undefined) throw usageError(`--${live} needs a running kube-proxy`);
  if (given.has('server')) throw usageError(`--server and --${offline} exclude each other`);
}

/** Fits tables to a terminal, but not in a pipe and not with -o wide. */
function layoutOf({ output }: CtlOptions, { stdout }: Terminal): Layout {
  const isWide = output === 'wide';
  return { width: stdout.isTTY && !isWide ? stdout.columns : undefined, isWide };
}

async function openSource(
  { flags }: Command,
  options: CtlOptions,
  terminal: Terminal,
): Promise<ReportSource> {
  if (!isWithoutProxy(options)) {
    const hint = flags.some(({ name }) => name === 'without-proxy')
      ? '; to get an answer while it is down, add --without-proxy, --manifests or --kubeconfig'
      : '';
    return serverSource(await serverAddress(options, terminal.env), toMillis(options.timeout), hint);
  }
  // Loaded only when needed: it is most of the proxy.
  const { plannedSource } = await import('./planned-source.ts');
  return plannedSource(
    options,
    warningLogger((text) => terminal.stderr.write(text)),
  );
}

function usageError(message: string): UsageError {
  return new UsageError(message);
}

/** Writes errors as warnings and drops every other log line. */
function warningLogger(write: (text: string) => unknown): Logger {
  const logger: Logger = {
    info() {},
    error(error, message, attributes = {}) {
      const cause = error instanceof Error ? error.message : error;
      const details = [cause, ...Object.values(attributes)].filter((part) => part !== undefined);
      write(`Warning: ${[message, ...details.map(String)].join(': ')}\n`);
    },
    v: () => ({ ...logger, error() {} }),
    enabled: false,
    named: () => logger,
  };
  return logger;
}
