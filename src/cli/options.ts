import { periodFlagsOf } from '../config/convert.ts';
import { withPort } from '../config/defaults.ts';
import type { ConfigDraft, LoggingConfig } from '../config/types.ts';
import { quote } from '../lib/go-quote.ts';
import type { ParsedFlags } from './flag-set.ts';
import { stringSlice } from './flag-types.ts';
import { defaultValues, type FlagValues } from './flags/flag.ts';
import { retiredNames } from './flags.ts';

/** The values of the command line. */
export interface Options extends Readonly<FlagValues> {
  /** The text of every flag for /flagz and the start-up log, sorted by name. */
  readonly flags: ReadonlyMap<string, string>;
  /** The names of the flags that were given. */
  readonly changed: ReadonlySet<string>;
}

/** Combines the parsed flags with the defaults. */
export function optionsOf(parsed: ParsedFlags<FlagValues>): Options {
  const values = defaultValues();
  parsed.writeTo(values);
  const listed = [...parsed.texts].filter(([name]) => !retiredNames.has(name));
  return { ...values, flags: new Map(listed), changed: parsed.changed };
}

/**
 * The text of every flag for /flagz and the log. Without a configuration file, flags show the completed configuration,
 * with its defaults.
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

/** The log messages with all flags, for verbosity 1. */
export function flagMessages(options: Options, config: ConfigDraft): string[] {
  return [...flagTexts(options, config)].map(([name, text]) => `FLAG: --${name}=${quote(text)}`);
}

/**
 * The configuration of a start without --config, without platform defaults. Throws when --hostname-override is blank;
 * validation checks the rest.
 */
export function configFromFlags(options: Options): ConfigDraft {
  const config = structuredClone(options.draft);
  if (options.configPath === '' && options.writeConfigTo === '') foldPorts(config, options);
  applySyncPeriods(config, options);
  // An empty value makes a list of one empty entry, which validation refuses.
  if (options.changed.has('cluster-cidr')) config.detectLocal.clusterCIDRs = options.clusterCIDR.split(',');
  applyHostnameOverride(config, options);
  return config;
}

/** Applies --hostname-override to a configuration from flags or from a file. */
export function applyHostnameOverride(config: ConfigDraft, options: Options): void {
  if (options.hostnameOverride === '') return;
  const name = options.hostnameOverride.trim();
  if (name === '') throw new Error('empty hostname-override is invalid');
  config.hostnameOverride = name.toLowerCase();
}

/**
 * The logging section of a configuration file, with the given logging flags applied. As in upstream, the two
 * split-stream settings come from the flags alone.
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

/** Applies the port flags: they add a port to an address without one; 0 removes the address. */
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
