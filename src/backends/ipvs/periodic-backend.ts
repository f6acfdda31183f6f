import type { Clock, Timer } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';

export interface PeriodicOptions {
  readonly backend: Backend;
  readonly clock: Clock;
  /** From the end of a full sync to the next. */
  readonly periodMs: number;
  readonly requestFullSync: () => void;
  /** Called after the backend was closed. */
  readonly onClose: () => Promise<void>;
}

/**
 * A backend that has everything compared with the kernel every period: nothing tells when somebody else changes
 * virtual servers, sets or rules.
 */
export class PeriodicBackend implements Backend {
  readonly family: Family;
  readonly #options: PeriodicOptions;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: PeriodicOptions) {
    this.#options = options;
    this.family = options.backend.family;
  }

  async sync(request: SyncRequest): Promise<SyncResult> {
    const { backend, clock, periodMs, requestFullSync } = this.#options;
    try {
      return await backend.sync(request);
    } finally {
      if (!this.#isClosed && (request.changed === 'all' || !this.#timer)) {
        this.#timer?.cancel();
        this.#timer = clock.setTimeout(requestFullSync, periodMs);
      }
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#options.backend.close();
    await this.#options.onClose();
  }
}
