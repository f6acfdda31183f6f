import type { Clock } from '../../lib/clock.ts';
import type { EventAnswer, EventRequest, SendEvent } from './send.ts';

const maxTries = 12;
const retryMs = 10_000;
const retryJitter = 0.25;

export interface DeliveryOptions {
  readonly send: SendEvent;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Sends one request, again and again while nobody answers. */
export class Delivery {
  readonly #options: DeliveryOptions;
  #closed = false;
  #endPause: (() => void) | undefined;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Resolves with the server's answer; rejects with the last error when every try failed. */
  async deliver(request: EventRequest): Promise<EventAnswer> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#options.send(request);
      } catch (error) {
        if (tries < maxTries) await this.#pause();
        if (tries >= maxTries || this.#closed) throw error;
      }
    }
  }

  /** Makes the next try of a request that is waiting for it happen now. */
  hurry(): void {
    this.#endPause?.();
  }

  /** No further tries. */
  close(): void {
    this.#closed = true;
    this.hurry();
  }

  #pause(): Promise<void> {
    const { clock, random } = this.#options;
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel();
        this.#endPause = undefined;
        resolve();
      };
      const timer = clock.setTimeout(done, retryMs * (1 + random() * retryJitter));
      this.#endPause = done;
    });
  }
}
