import { parseFlags } from '../cli/flag-set.ts';
import { UsageError } from '../cli/usage-error.ts';
import { systemClock } from '../lib/clock.ts';
import { quote } from '../lib/go-quote.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Logger } from '../obs/log.ts';
import { allCommands, commandOf } from './all-commands.ts';
import { type AnyCommand, type Command, flagsOf, isLocal } from './command.ts';
import { COMPLETE, complete } from './completion/complete.ts';
import { allFlags, type CtlOptions, defaultOptions, isWithoutProxy, needNode } from './flags.ts';
import { commandHelp, programHelp } from './help.ts';
import { patienceOf } from './patience.ts';
import { PLUGIN, type ProgramName } from './program-name.ts';
import { runningProxy } from './running-proxy.ts';
import type { ReportSource } from './source.ts';
import type { Layout } from './table.ts';
import { EXIT_ERROR, EXIT_OK, type ExitCode, painter, type Terminal } from './terminal.ts';
import { clientVersion, programText } from './version.ts';

/** Runs kube-proxyctl with these arguments and sets the exit code. */
export async function main(args: string[], terminal: Terminal = process): Promise<void> {
  if (terminal === process) exitWithReader();
  const isPlugin = args[0] === PLUGIN;
  const program = isPlugin ? 'kubectl kube_proxy' : 'kube-proxyctl';
  try {
    terminal.exitCode = await run(program, isPlugin ? args.slice(1) : args, terminal);
  } catch (error) {
    terminal.stderr.write(`Error: ${messageOf(error)}${hintFor(error, program)}\n`);
    terminal.exitCode = EXIT_ERROR;
  }
}

function hintFor(error: unknown, program: ProgramName): string {
  if (!(error instanceof UsageError)) return '';
  const { suggestion } = error;
  return suggestion === undefined ? `; see ${program} --help` : `; did you mean ${suggestion}?`;
}

/** Exits when the reader of a pipe is gone, as in `kube-proxyctl services | head`. */
function exitWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(EXIT_OK);
  });
}

async function run(program: ProgramName, argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  if (argv[0] === COMPLETE) return complete(argv.slice(1), terminal);
  const parsed = parseFlags(allFlags, argv);
  const options: CtlOptions = { ...defaultOptions };
  parsed.writeTo(options);
  const [name, ...args] = parsed.positionals;
  const command = name === undefined ? undefined : commandOf(name);
  const text = helpOrVersion(program, argv, command, options, terminal);
  if (text !== undefined) {
    terminal.stdout.write(text);
    return EXIT_OK;
  }
  if (!command) throw new UsageError('a command is needed');
  if (program === 'kubectl kube_proxy') checkPlugin(command, parsed.changed);
  check(command, args, options, parsed.changed);
  if (!isLocal(command)) return runCommand(command, args, options, terminal);
  terminal.stdout.write(command.textOf(args, widthOf(terminal), program));
  return EXIT_OK;
}

/** The text when the command line asks for help or the version, or is empty. */
function helpOrVersion(
  program: ProgramName,
  argv: readonly string[],
  command: AnyCommand | undefined,
  options: CtlOptions,
  terminal: Terminal,
): string | undefined {
  if (command && options.help) return commandHelp(command, widthOf(terminal), program);
  if (options.help || argv.length === 0) return programHelp(allCommands, widthOf(terminal), program);
  if (!options.version) return undefined;
  if (command) throw new UsageError(`--version takes no command, got ${quote(command.name)}`);
  return `kube-proxyctl of ${programText(clientVersion())}\n`;
}

async function runCommand(
  command: Command,
  args: readonly string[],
  options: CtlOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const source = await openSource(command, options, terminal);
  const [paint, layout] = [painter(terminal), layoutOf(options, terminal)];
  try {
    return await command.run({ args, options, source, terminal, paint, layout, clock: systemClock });
  } finally {
    await source.close();
  }
}

/** Throws when the command does not take these arguments or flags. */
function check(
  command: AnyCommand,
  args: readonly string[],
  options: CtlOptions,
  given: ReadonlySet<string>,
): void {
  const { least, most } = command.arguments;
  if (args.length < least || args.length > most) {
    const wanted = command.usage === '' ? 'no arguments' : command.usage;
    throw new UsageError(`${command.name} takes ${wanted}, got ${args.map(quote).join(' ') || 'none'}`);
  }
  const known = new Set(flagsOf(command).map(({ name }) => name));
  const stray = [...given].find((name) => !known.has(name));
  if (stray !== undefined) throw new UsageError(`${command.name} has no flag --${stray}`);
  if (isLocal(command)) return;
  if (options.output === 'name' && !command.hasNames) throw new UsageError(`${command.name} has no -o name`);
  checkTogether(command, given);
  checkNode(command, given);
}

/** The flags that say where the answer comes from, other than -N. */
const otherSources = ['server', 'config', 'without-proxy', 'manifests', 'bundle'] as const;

/** Throws when flags do not go together with -N, or need it. */
function checkNode(command: Command, given: ReadonlySet<string>): void {
  if (given.has('on-node')) {
    if (command.runsOnNode) throw new UsageError(onNodeOnly(command));
    const other = [...otherSources, 'node', 'proxy-mode', 'live'].find((name) => given.has(name));
    if (other !== undefined) throw new UsageError(`--on-node and --${other} exclude each other`);
    return;
  }
  const needy = needNode.find((name) => given.has(name));
  if (needy !== undefined) throw new UsageError(`--${needy} needs -N NODE`);
  if (given.has('kubeconfig') && !isOfflineCapable(command)) {
    throw new UsageError(`${command.name} takes --kubeconfig only with -N NODE`);
  }
}

function onNodeOnly({ name }: Command): string {
  return `${name} runs on the node itself, not with -N: kubectl -n kube-system exec POD -- kube-proxyctl ${name} …, where POD is kube-proxy on that node`;
}

/** Throws when the plugin does not know which proxy to ask. */
function checkPlugin(command: AnyCommand, given: ReadonlySet<string>): void {
  if (!isLocal(command) && command.runsOnNode) throw new UsageError(onNodeOnly(command));
  if (!isLocal(command) && !['on-node', ...otherSources].some((name) => given.has(name))) {
    throw new UsageError('-N NODE is needed');
  }
}

function isOfflineCapable({ flags }: Command): boolean {
  return flags.some(({ name }) => name === 'without-proxy');
}

/** The flags that mean an answer without a proxy. */
const offlineNames = ['without-proxy', 'manifests', 'kubeconfig', 'bundle'] as const;

/** Throws when flags do not go together. */
function checkTogether(command: Command, given: ReadonlySet<string>): void {
  const pacing = ['interval', 'count'].find((name) => given.has(name));
  const mayWatch = command.flags.some(({ name }) => name === 'watch');
  if (pacing !== undefined && mayWatch && !given.has('watch'))
    throw new UsageError(`--${pacing} needs --watch`);
  const offline = offlineNames.find(
    (name) => given.has(name) && !(name === 'kubeconfig' && given.has('on-node')),
  );
  const needy = ['node', 'proxy-mode'].find((name) => given.has(name));
  if (needy !== undefined && offline === undefined) {
    throw new UsageError(`--${needy} needs --without-proxy, --manifests or --kubeconfig`);
  }
  if (given.has('proxy-mode') && given.has('config')) {
    throw new UsageError('--proxy-mode has no effect with --config, which sets the mode');
  }
  if (given.has('manifests') && given.has('kubeconfig')) {
    throw new UsageError('--manifests and --kubeconfig exclude each other');
  }
  if (offline === undefined) return;
  const other = ['without-proxy', 'manifests', 'kubeconfig', 'config', 'node', 'proxy-mode'].find((name) =>
    given.has(name),
  );
  if (given.has('bundle') && other !== undefined) {
    throw new UsageError(`--bundle and --${other} exclude each other`);
  }
  const live = ['live', 'watch'].find((name) => given.has(name));
  if (live !== undefined) throw new UsageError(`--${live} needs a running kube-proxy`);
  if (given.has('server')) throw new UsageError(`--server and --${offline} exclude each other`);
}

/** The columns of the terminal; undefined in a pipe. */
function widthOf({ stdout }: Terminal): number | undefined {
  return stdout.isTTY ? stdout.columns : undefined;
}

/** Fits tables to a terminal, but not in a pipe and not with -o wide. */
function layoutOf({ output }: CtlOptions, terminal: Terminal): Layout {
  const isWide = output === 'wide';
  return { width: isWide ? undefined : widthOf(terminal), isWide };
}

async function openSource(command: Command, options: CtlOptions, terminal: Terminal): Promise<ReportSource> {
  if (options.bundle !== '') {
    const { bundleSource } = await import('./bundle/bundle-source.ts');
    return bundleSource(options.bundle);
  }
  if (!isWithoutProxy(options)) {
    const hint = isOfflineCapable(command)
      ? '; to get an answer while it is down, add --without-proxy, --manifests or --kubeconfig'
      : '';
    return runningProxy(options, terminal.env, patienceOf(options), hint);
  }
  // Loaded only when needed: it is most of the proxy.
  const { plannedSource } = await import('./planned-source.ts');
  return plannedSource(
    options,
    warningLogger((text) => terminal.stderr.write(text)),
  );
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
