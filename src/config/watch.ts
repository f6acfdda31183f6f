import { hash } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Clock } from '../lib/clock.ts';
import { PathWatcher } from '../lib/path-watcher.ts';
import { asError } from '../lib/thrown.ts';
import { readConfigFile } from './config-file.ts';
import { decodeConfig } from './decode.ts';
import { applyPlatformDefaults } from './defaults.ts';
import { ConfigError } from './errors.ts';
import { FeatureGates } from './feature-gates.ts';
import { validated } from './validate.ts';

/** The error that ends upstream's process when its configuration file changes. */
export const CONFIG_CHANGED = "content of the proxy server's configuration file was updated";

export interface ConfigWatchOptions {
  /** The text that is in use. */
  readonly content: string;
  readonly clock: Clock;
  /** The file has a new, usable configuration. Called for each new content. */
  readonly onChange: () => void;
  /** The file cannot be read or used. Called once per content or error. */
  readonly onError: (error: Error) => void;
}

export interface ConfigWatch {
  /** Begins to report, starting with any difference from `content`. Throws when the file system cannot be watched. */
  start(): void;
  /** Ends the watch; nothing is reported afterwards. */
  close(): void;
}

/**
 * Watches a configuration file by content: a write in place, a rename over the file and the swap of a link on the
 * way to it (the `..data` of a ConfigMap volume) all count, a touch or a rewrite of the same bytes does not.
 */
export function watchConfigFile(path: string, options: ConfigWatchOptions): ConfigWatch {
  const isPipe = statSync(path, { throwIfNoEntry: false })?.isFIFO() ?? false;
  // A pipe was read to its end; it cannot change.
  return isPipe ? { start() {}, close() {} } : new FileWatch(path, options);
}

/** Rejects with a ConfigError when the program could not start with a text. */
async function checkUsable(text: string): Promise<void> {
  const { config } = applyPlatformDefaults((await decodeConfig(text)).config);
  validated(config, FeatureGates.of(config.featureGates));
}

class FileWatch implements ConfigWatch {
  readonly #path: string;
  readonly #options: ConfigWatchOptions;
  readonly #watcher: PathWatcher;
  #seen: string;
  /** The state of the file that was reported as an error last. */
  #reported = '';
  #started = false;
  #closed = false;
  #examining = false;
  /** Another event arrived while the file was being examined. */
  #again = false;

  constructor(path: string, options: ConfigWatchOptions) {
    this.#path = path;
    this.#options = options;
    this.#seen = hash('sha256', options.content);
    this.#watcher = new PathWatcher({
      path,
      clock: options.clock,
      onChange: () => void this.#examineOnce(),
      onError: (error) => {
        if (!this.#started) throw error;
        this.#reportError(`watch:${error.message}`, error);
      },
    });
  }

  start(): void {
    this.#watcher.start();
    this.#started = true;
    this.#watcher.noteEvent();
  }

  close(): void {
    this.#closed = true;
    this.#watcher.close();
  }

  async #examineOnce(): Promise<void> {
    this.#again = this.#examining;
    if (this.#examining) return;
    this.#examining = true;
    try {
      await this.#examine();
    } catch (error) {
      const problem = asError(error);
      this.#reportError(`read:${problem.message}`, problem);
    } finally {
      this.#examining = false;
      if (this.#again) this.#watcher.noteEvent();
    }
  }

  async #examine(): Promise<void> {
    const text = await readConfigFile(this.#path);
    const seen = hash('sha256', text);
    if (seen === this.#seen) {
      this.#reported = '';
      return;
    }
    try {
      await checkUsable(text);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#reportError(`content:${seen}`, error);
      return;
    }
    if (this.#closed) return;
    this.#seen = seen;
    this.#reported = '';
    this.#options.onChange();
  }

  #reportError(state: string, error: Error): void {
    if (this.#closed || this.#reported === state) return;
    this.#reported = state;
    this.#options.onError(error);
  }
}
