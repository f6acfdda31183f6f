import { watch as fsWatch } from 'node:fs';
import { basename } from 'node:path';
import type { Clock, Timer } from './clock.ts';
import { type LinkChain, linkChain } from './link-chain.ts';
import { asError } from './thrown.ts';

/** Files are often written in several steps: report when nothing has changed for this long … */
const quietMs = 100;
/** … but do not wait longer than this for that moment. */
const patienceMs = 1_000;

export interface PathWatcherOptions {
  /** A directory, whose entries are watched, or a file; either may be missing. */
  readonly path: string;
  readonly clock: Clock;
  /** Also reports every so often without an event: the kernel does not watch targets of links in a directory. */
  readonly pollMs?: number;
  readonly onChange: (cause: 'event' | 'poll') => void;
  /** The file system cannot be watched. Called once for the same error in a row. */
  readonly onError: (error: Error) => void;
  readonly watch?: (directory: string) => ReturnType<typeof fsWatch>;
}

/**
 * Reports when a path may lead to something else: a write in place, a rename over the file, the swap of a link or
 * directory on the way to it (the `..data` of a ConfigMap volume), a missing part that appears. Watches directories
 * only, with inotify.
 */
export class PathWatcher {
  readonly #options: PathWatcherOptions;
  #chain: LinkChain = new Map();
  #watches = new Map<string, ReturnType<typeof fsWatch>>();
  #firstEvent: number | undefined;
  #quiet: Timer | undefined;
  #poll: Timer | undefined;
  #lastError = '';
  #closed = false;

  constructor(options: PathWatcherOptions) {
    this.#options = options;
  }

  start(): void {
    this.#schedulePoll();
    this.#renewWatches();
  }

  close(): void {
    this.#closed = true;
    this.#quiet?.cancel();
    this.#poll?.cancel();
    closeAll(this.#watches);
  }

  /** Reports an event as soon as there are no further ones. */
  noteEvent(): void {
    if (this.#closed) return;
    const { clock } = this.#options;
    const now = clock.monotonic();
    this.#firstEvent ??= now;
    this.#quiet?.cancel();
    const wait = Math.min(quietMs, this.#firstEvent + patienceMs - now);
    this.#quiet = clock.setTimeout(() => {
      this.#firstEvent = undefined;
      this.#report('event');
    }, wait);
  }

  #schedulePoll(): void {
    const { clock, pollMs } = this.#options;
    if (pollMs === undefined) return;
    this.#poll = clock.setTimeout(() => {
      this.#schedulePoll();
      this.#report('poll');
    }, pollMs);
  }

  /** Renews the watches first: what changes after the caller has looked then makes an event. */
  #report(cause: 'event' | 'poll'): void {
    this.#renewWatches();
    this.#options.onChange(cause);
  }

  /**
   * Watches the directories that the path leads through now. Directories that were watched before are watched again,
   * because a new directory of the same name may even have the inode number of the one that it replaced.
   */
  #renewWatches(): void {
    const old = this.#watches;
    this.#watches = new Map();
    try {
      // A link may change between being read and its directory being watched, so read again after a new watch.
      for (let round = 0; round < 5 && this.#addWatches(); round++);
      this.#lastError = '';
    } catch (error) {
      this.#fail(asError(error));
    } finally {
      closeAll(old);
    }
  }

  /** Returns whether a directory was added. */
  #addWatches(): boolean {
    this.#chain = linkChain(this.#options.path);
    const missing = [...this.#chain.keys()].filter((directory) => !this.#watches.has(directory));
    for (const directory of missing) this.#watch(directory);
    return missing.length > 0;
  }

  #watch(directory: string): void {
    const watch = this.#options.watch ?? ((path) => fsWatch(path, { persistent: false }));
    const watcher = watch(directory);
    this.#watches.set(directory, watcher);
    watcher.on('change', (_type, name) => {
      const names = this.#chain.get(directory);
      // The kernel reports the removal of a watched directory under that directory's own name.
      const isOurs =
        names === 'all' || name === null || names?.has(String(name)) || name === basename(directory);
      if (isOurs) this.noteEvent();
    });
    watcher.on('error', (error) => this.#fail(error));
  }

  #fail(error: Error): void {
    if (this.#closed || this.#lastError === error.message) return;
    this.#lastError = error.message;
    this.#options.onError(error);
  }
}

function closeAll(watches: Map<string, ReturnType<typeof fsWatch>>): void {
  for (const watcher of watches.values()) watcher.close();
  watches.clear();
}
