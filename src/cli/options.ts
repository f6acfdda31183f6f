import { periodFlagsOf } from '../config/convert.ts';
import { withPort } from '../config/defaults.ts';
import type { ConfigDraft, LoggingConfig } from '../config/types.ts';
import { quote } from '../lib/go-quote.ts';
import type { ParsedFlags } from './flag-set.ts';
import { stringSlice } from './flag-types.ts';
import { defaultValues, type FlagValues } from './flags/flag.ts';
import { retiredNames } from './flags.ts';

/** What the command line asks for. */
export interface Options extends Readonly<FlagValues> {
  /** Every flag with its value as /flagz and the start-up log show it, sorted by name. */
  readonly flags: ReadonlyMap<string, string>;
  /** The names of the flags that were given. */
  readonly changed: ReadonlySet<string>;
}

/** Gathers the parsed flags over the defaults of a start without any. */
export function optionsOf(parsed: ParsedFlags<FlagValues>): Options {
  const values = defaultValues();
  parsed.writeTo(values);
  const listed = [...parsed.texts].filter(([name]) => !retiredNames.has(name));
  return { ...values, flags: new Map(listed), changed: parsed.changed };
}

/**
 * Every flag as the log and /flagz show it once the configuration is complete. Without a file the flags are the
 * configuration, so what completing it has filled in shows up in them.
 */
export function flagTexts(options: Options, config: ConfigDraft): ReadonlyMap<string, string> {
  if (options.configPath !== '') return options.flags;
  return new Map([
    ...options.flags,
    ['proxy-mode', config.mode],
    ['detect-local-mode', config.detectLocalMode],
    ['nodeport-addresses', stringSlice.format(config.nodePortAddresses ?? [])],
    ['healthz-bind-address', config.healthzBindAddress],
    ['metrics-bind-address', config.metricsBindAddress],
  ]);
}

/** The log messages that tell every flag at verbosity 1. */
export function flagMessages(options: Options, config: ConfigDraft): string[] {
  return [...flagTexts(options, config)].map(([name, text]) => `FLAG: --${name}=${quote(text)}`);
}

/**
 * The configuration of a start without --config, before platform defaults. Throws when --hostname-override is
 * blank; everything else is left for validation to judge.
 */
export function configFromFlags(options: Options): ConfigDraft {
  const config = structuredClone(options.draft);
  if (options.configPath === '' && options.writeConfigTo === '') foldPorts(config, options);
  applySyncPeriods(config, options);
  // Given but empty still makes a list of one empty entry, which validation refuses.
  if (options.changed.has('cluster-cidr')) config.detectLocal.clusterCIDRs = options.clusterCIDR.split(',');
  applyHostnameOverride(config, options);
  return config;
}

/** Lets --hostname-override win over the configuration it is given, whether from flags or from a file. */
export function applyHostnameOverride(config: ConfigDraft, options: Options): void {
  if (options.hostnameOverride === '') return;
  const name = options.hostnameOverride.trim();
  if (name === '') throw new Error('empty hostname-override is invalid');
  config.hostnameOverride = name.toLowerCase();
}

/**
 * The logging section of a configuration file after the logging flags that were given. The two split-stream
 * switches come from the flags alone, as upstream has it: the file cannot turn them on.
 */
export function mergeLoggingFlags(file: LoggingConfig, options: Options): LoggingConfig {
  const flags = options.draft.logging;
  const pick = <T>(name: string, fromFlag: T, fromFile: T): T =>
    options.changed.has(name) ? fromFlag : fromFile;
  const stream = (format: 'text' | 'json') => ({
    splitStream: flags.options[format].splitStream,
    infoBufferSize: pick(
      `log-${format}-info-buffer-size`,
      flags.options[format].infoBufferSize,
      file.options[format].infoBufferSize,
    ),
  });
  return {
    format: pick('logging-format', flags.format, file.format),
    flushFrequency: pick('log-flush-frequency', flags.flushFrequency, file.flushFrequency),
    verbosity: pick('v', flags.verbosity, file.verbosity),
    vmodule: [...flags.vmodule, ...file.vmodule].map((item) => ({ ...item })),
    options: { text: stream('text'), json: stream('json') },
  };
}

/** Port flags only complete an address that has no port; 0 takes the address away. */
function foldPorts(config: ConfigDraft, options: Options): void {
  const fold = (address: string, port: number) => (port === 0 ? '' : withPort(address, port));
  config.healthzBindAddress = fold(config.healthzBindAddress, options.healthzPort);
  config.metricsBindAddress = fold(config.metricsBindAddress, options.metricsPort);
}

function applySyncPeriods(config: ConfigDraft, options: Options): void {
  const { changed } = options;
  const flags = periodFlagsOf(config.mode);
  if (changed.has(`${flags}-sync-period`)) config.syncPeriod = options[`${flags}SyncPeriod`];
  if (changed.has(`${flags}-min-sync-period`)) config.minSyncPeriod = options[`${flags}MinSyncPeriod`];
}
