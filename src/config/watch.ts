import { hash } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Clock, Timer } from '../lib/clock.ts';
import { asError } from '../lib/thrown.ts';
import { readConfigFile } from './config-file.ts';
import { decodeConfig } from './decode.ts';
import { applyPlatformDefaults } from './defaults.ts';
import { DirectoryWatches } from './directory-watches.ts';
import { ConfigError } from './errors.ts';
import { FeatureGates } from './feature-gates.ts';
import { validated } from './validate.ts';

/** What upstream's process ends with when its configuration file changes. */
export const CONFIG_CHANGED = "content of the proxy server's configuration file was updated";

/** A writer is given this long to finish … */
const QUIET_MS = 100;
/** … but an endless trickle of events does not put off looking for longer than this. */
const PATIENCE_MS = 1000;

export interface ConfigWatchOptions {
  /** The text that is in use. */
  readonly content: string;
  readonly clock: Clock;
  /** The file holds a usable configuration that differs from the one in use. Called for each such content. */
  readonly onChange: () => void;
  /** The file cannot be read or used, so the configuration in use stays. Called once per state of the file. */
  readonly onError: (error: Error) => void;
  /** Rejects when a text is no usable configuration. */
  readonly check?: (text: string) => Promise<void>;
}

/** A watch that is set up; nothing is reported before `start`. */
export interface ConfigWatch {
  /** Begins to report, starting with what has happened since the set-up. */
  start(): void;
  /** Ends the watch; nothing is reported afterwards. */
  close(): void;
}

/**
 * Watches a configuration file by content: a write in place, a rename over the file and the swap of a link on the
 * way to it (the `..data` of a ConfigMap volume) all count, a touch or a rewrite of the same bytes does not.
 * Throws when the file system cannot be watched.
 */
export function watchConfigFile(path: string, options: ConfigWatchOptions): ConfigWatch {
  const isPipe = statSync(path, { throwIfNoEntry: false })?.isFIFO() ?? false;
  // A pipe has been read to its end; there is nothing left to watch.
  return isPipe ? { start() {}, close() {} } : new FileWatch(path, options);
}

/** Whether the program could start with a text. Rejects with a ConfigError otherwise. */
export async function checkUsable(text: string): Promise<void> {
  const { config } = applyPlatformDefaults((await decodeConfig(text)).config);
  validated(config, FeatureGates.of(config.featureGates));
}

class FileWatch implements ConfigWatch {
  readonly #path: string;
  readonly #options: ConfigWatchOptions;
  readonly #directories: DirectoryWatches;
  #seen: string;
  /** The state of the file that was complained about last. */
  #reported = '';
  #started = false;
  #closed = false;
  #timer: Timer | undefined;
  #firstEvent: number | undefined;
  #examining = false;
  /** Something happened while the file was being looked at. */
  #again = false;

  constructor(path: string, options: ConfigWatchOptions) {
    this.#path = path;
    this.#options = options;
    this.#seen = hash('sha256', options.content);
    this.#directories = new DirectoryWatches(
      () => this.#event(),
      (error) => this.#complain(`watch:${error.message}`, error),
    );
    this.#directories.follow(path);
  }

  start(): void {
    this.#started = true;
    this.#event();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#directories.close();
  }

  #event(): void {
    if (!this.#started || this.#closed) return;
    const { clock } = this.#options;
    const now = clock.monotonic();
    this.#firstEvent ??= now;
    this.#timer?.cancel();
    const wait = Math.min(QUIET_MS, this.#firstEvent + PATIENCE_MS - now);
    this.#timer = clock.setTimeout(() => void this.#settled(), Math.max(0, wait));
  }

  async #settled(): Promise<void> {
    this.#again = this.#examining;
    if (this.#examining) return;
    this.#firstEvent = undefined;
    this.#examining = true;
    try {
      await this.#examine();
    } catch (error) {
      const problem = asError(error);
      this.#complain(`watch:${problem.message}`, problem);
    } finally {
      this.#examining = false;
      if (this.#again) this.#event();
    }
  }

  async #examine(): Promise<void> {
    // Watches come first: what changes after the file is read makes an event.
    this.#directories.follow(this.#path);
    const text = await readConfigFile(this.#path);
    const seen = hash('sha256', text);
    if (seen === this.#seen) {
      this.#reported = '';
      return;
    }
    try {
      await (this.#options.check ?? checkUsable)(text);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#complain(`content:${seen}`, error);
      return;
    }
    if (this.#closed) return;
    this.#seen = seen;
    this.#reported = '';
    this.#options.onChange();
  }

  #complain(state: string, error: Error): void {
    if (this.#closed || !this.#started || this.#reported === state) return;
    this.#reported = state;
    this.#options.onError(error);
  }
}
