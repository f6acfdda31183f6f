import { applyHostnameOverride, configFromFlags, mergeLoggingFlags, type Options } from '../cli/options.ts';
import { readConfigFile } from '../config/config-file.ts';
import { decodeConfig, strictDecodingError } from '../config/decode.ts';
import { applyPlatformDefaults } from '../config/defaults.ts';
import { joinMessages } from '../config/errors.ts';
import { FeatureGates, type GateReport } from '../config/feature-gates.ts';
import type { ConfigDraft, ProxyConfig } from '../config/types.ts';
import { validateLogging } from '../config/validate-logging.ts';
import type { ConfigText } from '../config/watch.ts';
import { systemClock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Logger } from '../obs/log.ts';

/** The effective configuration and where it came from; `complete` returns it before validation. */
export interface Completed<Config = ProxyConfig> {
  readonly config: Config;
  /** Present with --config: the file that the configuration came from. */
  readonly file?: ConfigText;
  readonly gates: FeatureGates;
  /** The mode is the default. That deserves a warning, because the default will change. */
  readonly modeDefaulted: boolean;
}

/** Combines flags, file, platform defaults and feature gates. Throws the reason when that fails. */
export async function complete(options: Options, logger: Logger): Promise<Completed<ConfigDraft>> {
  const file =
    options.configPath === ''
      ? undefined
      : {
          path: options.configPath,
          text: await readConfigFile(options.configPath),
          readAt: systemClock.now(),
        };
  return completeWith(options, file, logger);
}

/** The same with a file that was read already; undefined without --config. */
export async function completeWith(
  options: Options,
  file: ConfigText | undefined,
  logger: Logger,
): Promise<Completed<ConfigDraft>> {
  const base = file ? await configFromFile(file.text, options, logger) : configFromFlags(options);
  const { config, modeDefaulted } = applyPlatformDefaults(base);
  applyHostnameOverride(config, options);
  const gates = FeatureGates.of(config.featureGates, gateReport(logger));
  return { config, gates, modeDefaulted, ...(file && { file }) };
}

/** Throws when the logging section, with the flags for it, is invalid. */
export function checkLogging({ config, gates }: Completed<ConfigDraft>): void {
  const errors = validateLogging(config.logging, gates, 'logging');
  if (errors.length > 0) throw new Error(joinMessages(errors));
}

async function configFromFile(text: string, options: Options, logger: Logger): Promise<ConfigDraft> {
  const { config, strictErrors } = await decode(text);
  if (strictErrors.length > 0) {
    logger.info('Using lenient decoding as strict decoding failed', {
      err: strictDecodingError(strictErrors),
    });
  }
  return { ...config, logging: mergeLoggingFlags(config.logging, options) };
}

async function decode(text: string): ReturnType<typeof decodeConfig> {
  try {
    return await decodeConfig(text);
  } catch (error) {
    throw new Error(`failed to decode: ${messageOf(error)}`, { cause: error });
  }
}

/** Logs the messages about feature gates. */
export function gateReport(logger: Logger): GateReport {
  return (level, message, attributes) => logger.v(level).info(message, attributes);
}
