import { type FSWatcher, watch } from 'node:fs';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Logger } from '../../obs/log.ts';

/** Files are often written in several steps; look when they have been left alone for a moment… */
const quietMs = 100;
/** …but do not wait for ever for that moment. */
const patienceMs = 1_000;
/** Catches what the kernel does not tell: targets of symbolic links, a directory that was replaced. */
const pollMs = 10_000;

export interface WatcherOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `poll` when nothing says that anything changed. */
  readonly onChange: (cause: 'event' | 'poll') => void;
}

/** Tells when entries of a directory may have changed. Without a working kernel watch it still polls. */
export class DirectoryWatcher {
  readonly #options: WatcherOptions;
  #watch: FSWatcher | undefined;
  #firstEvent: number | undefined;
  #quiet: Timer | undefined;
  #poll: Timer | undefined;
  #closed = false;
  #reported = '';

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  start(): void {
    this.#renewWatch();
    this.#schedulePoll();
  }

  close(): void {
    this.#closed = true;
    this.#quiet?.cancel();
    this.#poll?.cancel();
    this.#dropWatch();
  }

  #schedulePoll(): void {
    this.#poll = this.#options.clock.setTimeout(() => {
      this.#renewWatch();
      this.#schedulePoll();
      this.#options.onChange('poll');
    }, pollMs);
  }

  /**
   * Watches the directory that has the name now, which may be another one than before: device and inode would
   * not tell, as a new directory often gets the number of the one it replaces.
   */
  #renewWatch(): void {
    const old = this.#watch;
    try {
      this.#watch = watch(this.#options.directory, { persistent: false }, () => this.#changed());
      this.#watch.on('error', (error) => this.#lost(error));
      this.#reported = '';
      old?.close();
    } catch (error) {
      this.#lost(error);
    }
  }

  #lost(error: unknown): void {
    this.#dropWatch();
    const text = String(error);
    if (this.#closed || text === this.#reported) return;
    this.#reported = text;
    const { directory, logger } = this.#options;
    logger.error(error, 'Cannot watch the manifests; looking at them now and then', { directory, pollMs });
  }

  #dropWatch(): void {
    this.#watch?.close();
    this.#watch = undefined;
  }

  #changed(): void {
    if (this.#closed) return;
    const now = this.#options.clock.monotonic();
    this.#firstEvent ??= now;
    this.#quiet?.cancel();
    const wait = Math.min(quietMs, this.#firstEvent + patienceMs - now);
    this.#quiet = this.#options.clock.setTimeout(() => {
      this.#firstEvent = undefined;
      this.#options.onChange('event');
    }, wait);
  }
}
