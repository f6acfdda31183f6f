import { type FSWatcher, watch as fsWatch, statSync } from 'node:fs';
import { basename } from 'node:path';
import { linkChain } from './link-chain.ts';

/** The inotify watches on the directories that a path leads through. */
export class DirectoryWatches {
  readonly #onEvent: () => void;
  readonly #onError: (error: Error) => void;
  readonly #watches = new Map<string, { watcher: FSWatcher; names: Set<string> }>();

  constructor(onEvent: () => void, onError: (error: Error) => void) {
    this.#onEvent = onEvent;
    this.#onError = onError;
  }

  /** Watches what the path leads through now and drops the rest. */
  follow(path: string): void {
    // A link may change between being read and its directory being watched, so go again after a new watch.
    for (let round = 0; round < 5 && this.#adopt(linkChain(path)); round++);
  }

  close(): void {
    for (const { watcher } of this.#watches.values()) watcher.close();
    this.#watches.clear();
  }

  /** True when a directory was added. */
  #adopt(chain: Map<string, Set<string>>): boolean {
    const wanted = new Map<string, [directory: string, names: Set<string>]>();
    for (const [directory, names] of chain) {
      const stats = statSync(directory, { throwIfNoEntry: false });
      // The same path can become another directory, which needs a watch of its own.
      if (stats) wanted.set(`${stats.dev}:${stats.ino}:${directory}`, [directory, names]);
    }
    for (const [key, { watcher }] of this.#watches) {
      if (wanted.has(key)) continue;
      watcher.close();
      this.#watches.delete(key);
    }
    let added = false;
    for (const [key, [directory, names]] of wanted) {
      const existing = this.#watches.get(key);
      if (existing) existing.names = names;
      else this.#watches.set(key, this.#open(directory, names));
      added ||= !existing;
    }
    return added;
  }

  #open(directory: string, names: Set<string>) {
    const watch = { watcher: fsWatch(directory), names };
    watch.watcher.on('change', (_type, name) => {
      // The directory itself going away is told under its own name.
      const isOurs = name === null || watch.names.has(String(name)) || String(name) === basename(directory);
      if (isOurs) this.#onEvent();
    });
    watch.watcher.on('error', this.#onError);
    return watch;
  }
}
