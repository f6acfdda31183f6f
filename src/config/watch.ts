import { hash } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Clock } from '../lib/clock.ts';
import { PathWatcher } from '../lib/path-watcher.ts';
import { asError } from '../lib/thrown.ts';
import type { ConfigFileStatus, ConfigOnDisk } from '../model/config-file-status.ts';
import { readConfigFile } from './config-file.ts';
import { decodeConfig } from './decode.ts';
import { applyPlatformDefaults } from './defaults.ts';
import { ConfigError } from './errors.ts';
import { FeatureGates } from './feature-gates.ts';
import { validated } from './validate.ts';

/** The error that ends upstream's process when its configuration file changes. */
export const CONFIG_CHANGED = "content of the proxy server's configuration file was updated";

/** The text of a configuration file, and when it was read, in ms since the Unix epoch. */
export interface ConfigText {
  readonly path: string;
  readonly text: string;
  readonly readAt: number;
}

/** What became of a new content: it is in use, the program is about to end for it, or it was rejected. */
export type Verdict =
  | { readonly state: 'InUse' }
  | { readonly state: 'Changed' | 'Rejected'; readonly reason: string };

export interface ConfigWatchOptions {
  /** The text that is in use. */
  readonly content: string;
  /** When that was read, in ms since the Unix epoch. */
  readonly readAt: number;
  readonly clock: Clock;
  /** The file has a new, usable configuration. Called for each new content; the next call waits for the verdict. */
  readonly onChange: (file: ConfigText) => Promise<Verdict>;
  /** The file cannot be read or used. Called once per content or error. */
  readonly onError: (error: Error) => void;
}

export interface ConfigWatch {
  /** Begins to report, starting with any difference from `content`. Throws when the file system cannot be watched. */
  start(): void;
  /** Ends the watch; nothing is reported afterwards. */
  close(): void;
  /** The file as it was last looked at. */
  status(): ConfigFileStatus;
}

/**
 * Watches a configuration file by content: a write in place, a rename over the file and the swap of a link on the
 * way to it (the `..data` of a ConfigMap volume) all count, a touch or a rewrite of the same bytes does not.
 */
export function watchConfigFile(path: string, options: ConfigWatchOptions): ConfigWatch {
  const isPipe = statSync(path, { throwIfNoEntry: false })?.isFIFO() ?? false;
  // A pipe was read to its end; it cannot change.
  return isPipe ? unwatched(path, options, 'the path is a pipe') : new FileWatch(path, options);
}

function unwatched(path: string, { content, readAt }: ConfigWatchOptions, reason: string): ConfigWatch {
  const onDisk = { state: 'Unknown', since: readAt, reason } as const;
  return {
    start() {},
    close() {},
    status: () => ({ path, hash: hash('sha256', content), readAt, onDisk }),
  };
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
  /** The content in use. Its hash is made when somebody reads it: to load node:crypto takes milliseconds. */
  #inUse: { readonly text: string; readonly readAt: number };
  #onDisk: ConfigOnDisk;
  /** The last usable content, and what became of it. */
  #seen: string;
  #verdict: Verdict = { state: 'InUse' };
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
    this.#inUse = { text: options.content, readAt: options.readAt };
    this.#seen = options.content;
    this.#onDisk = { state: 'InUse', since: options.readAt, reason: undefined };
    this.#watcher = new PathWatcher({
      path,
      clock: options.clock,
      onChange: () => void this.#examineOnce(),
      onError: (error) => {
        if (!this.#started) throw error;
        this.#note('Unknown', error.message);
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

  status(): ConfigFileStatus {
    const { text, readAt } = this.#inUse;
    return {
      path: this.#path,
      get hash() {
        return hash('sha256', text);
      },
      readAt,
      onDisk: this.#onDisk,
    };
  }

  async #examineOnce(): Promise<void> {
    this.#again = this.#examining;
    if (this.#examining) return;
    this.#examining = true;
    try {
      await this.#examine();
    } catch (error) {
      const problem = asError(error);
      this.#note('Unusable', problem.message);
      this.#reportError(`read:${problem.message}`, problem);
    } finally {
      this.#examining = false;
      if (this.#again) this.#watcher.noteEvent();
    }
  }

  async #examine(): Promise<void> {
    const text = await readConfigFile(this.#path);
    const readAt = this.#options.clock.now();
    if (text === this.#inUse.text) this.#settle(text, { state: 'InUse' });
    if (text === this.#seen) {
      this.#settle(text, this.#verdict);
      return;
    }
    try {
      await checkUsable(text);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#note('Unusable', error.message);
      this.#reportError(`content:${text}`, error);
      return;
    }
    if (this.#closed) return;
    const verdict = await this.#options.onChange({ path: this.#path, text, readAt });
    if (verdict.state === 'InUse') this.#inUse = { text, readAt };
    this.#settle(text, verdict);
  }

  #settle(seen: string, verdict: Verdict): void {
    this.#seen = seen;
    this.#verdict = verdict;
    this.#reported = '';
    this.#note(verdict.state, 'reason' in verdict ? verdict.reason : undefined);
  }

  #note(state: ConfigOnDisk['state'], reason?: string): void {
    if (this.#onDisk.state === state && this.#onDisk.reason === reason) return;
    this.#onDisk = { state, since: this.#options.clock.now(), reason };
  }

  #reportError(state: string, error: Error): void {
    if (this.#closed || this.#reported === state) return;
    this.#reported = state;
    this.#options.onError(error);
  }
}
