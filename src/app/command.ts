import { parseCommandLine } from '../cli/command-line.ts';
import { helpText } from '../cli/help.ts';
import { flagMessages, type Options } from '../cli/options.ts';
import { UsageError } from '../cli/usage-error.ts';
import { writeConfigFile } from '../config/config-file.ts';
import { configToYAML } from '../config/encode.ts';
import { knownGates } from '../config/feature-gates.ts';
import type { ConfigDraft } from '../config/types.ts';
import { validated } from '../config/validate.ts';
import { messageOf } from '../lib/thrown.ts';
import type { RootLogger } from '../obs/klog.ts';
import { cleanUp, removeReplaced } from './cleanup.ts';
import { type Completed, checkLogging, complete, gateReport } from './complete.ts';
import { endOnSignals } from './end-on-signals.ts';
import { configuredLogger, startLogger } from './logging.ts';
import { loadMode } from './modes.ts';
import { buildServer } from './server.ts';

/** Runs kube-proxy with these arguments. Returns the exit code, and does not return while the proxy runs. */
export async function runCommand(argv: readonly string[]): Promise<number> {
  const options = readCommandLine(argv);
  if (typeof options === 'number') return options;
  const startUp = startLogger();
  let completed: Completed<ConfigDraft>;
  let logger: RootLogger;
  try {
    completed = await within('failed complete', () => complete(options, startUp));
    logger = await within('initialize logging', () => initialiseLogging(completed));
  } catch (error) {
    startUp.error(error, 'command failed');
    return 1;
  }
  try {
    for (const line of flagMessages(options, completed.config)) logger.print(1, line);
    const config = await within('failed validate', () =>
      validated(completed.config, completed.gates, gateReport(logger)),
    );
    return await run(options, { ...completed, config }, logger);
  } catch (error) {
    logger.error(error, 'command failed');
    return 1;
  } finally {
    logger.flush();
  }
}

/** The options to run with, or the exit code of a command line that only asks for help or is wrong. */
function readCommandLine(argv: readonly string[]): Options | number {
  const layout = { gates: knownGates(), width: process.stdout.columns };
  try {
    const parsed = parseCommandLine(argv);
    for (const warning of parsed.warnings) process.stderr.write(`${warning}\n`);
    if (parsed.action === 'run') return parsed.options;
    process.stdout.write(parsed.action === 'help' ? helpText(layout) : `${parsed.text}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    for (const warning of error.warnings) process.stderr.write(`${warning}\n`);
    const hint = error.suggestion === undefined ? '' : `Did you mean ${error.suggestion}? `;
    process.stderr.write(`Error: ${error.message}\n${hint}See 'kube-proxy --help' for usage.\n`);
    return 1;
  }
}

/** Upstream names the step that failed in front of the error. */
async function within<T>(step: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`${step}: ${messageOf(error)}`, { cause: error });
  }
}

function initialiseLogging(completed: Completed<ConfigDraft>): RootLogger {
  checkLogging(completed);
  return configuredLogger(completed.config.logging);
}

/** Returns the exit code; does not return while the proxy runs. */
async function run(options: Options, completed: Completed, logger: RootLogger): Promise<number> {
  try {
    if (options.writeConfigTo !== '') {
      await writeConfigFile(options.writeConfigTo, configToYAML(completed.config));
      logger.info('Wrote configuration', { file: options.writeConfigTo });
      return 0;
    }
    const output = { form: options.output, write: (text: string) => void process.stdout.write(text) };
    if (options.cleanup) return await cleanUp(options.dryRun, output, logger);
    const mode = await loadMode(completed.config.mode);
    const input = { options, completed, mode, logger };
    if (options.dryRun) {
      const { dryRun } = await import('./dry-run.ts');
      return await dryRun(input, output);
    }
    endOnSignals(() => logger.flush());
    const server = await buildServer(input);
    // As in upstream, only after the server is built: a start that fails leaves the node's rules alone.
    if (!options.initOnly) return await server.run();
    await removeReplaced(mode, logger);
    return 0;
  } catch (error) {
    logger.error(error, 'Error running ProxyServer');
    throw error;
  }
}
