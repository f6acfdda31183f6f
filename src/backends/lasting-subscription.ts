import type { Clock, Timer } from '../lib/clock.ts';
import type { Logger } from '../obs/log.ts';

export interface LastingSubscriptionOptions<S> {
  /** What it is about, for logs: `nftables changes`. */
  readonly topic: string;
  /** Subscribes. Throws, or calls `onLost` later, when the subscription fails. */
  readonly open: (onLost: (error: unknown) => void) => S;
  /** Called when a lost subscription is back: what happened meanwhile went unseen. */
  readonly onReopened: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  /** For logs. */
  readonly details?: Readonly<Record<string, unknown>>;
}

const reopenMs = 5_000;

/** A subscription to the kernel that is opened again five seconds after it was lost. */
export class LastingSubscription<S extends { close(): void }> {
  readonly #options: LastingSubscriptionOptions<S>;
  #current: S | undefined;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: LastingSubscriptionOptions<S>) {
    this.#options = options;
    this.#open();
  }

  /** Undefined while it is lost. */
  get current(): S | undefined {
    return this.#current;
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#current?.close();
    this.#current = undefined;
  }

  #open(): void {
    try {
      this.#current = this.#options.open((error) => this.#lose(error));
    } catch (error) {
      this.#lose(error);
    }
  }

  #lose(error: unknown): void {
    if (this.#isClosed) return;
    const { topic, clock, logger, details, onReopened } = this.#options;
    logger.error(error, `No subscription to ${topic}; trying again`, details);
    this.#current?.close();
    this.#current = undefined;
    this.#timer = clock.setTimeout(() => {
      this.#open();
      if (this.#current) onReopened();
    }, reopenMs);
  }
}
