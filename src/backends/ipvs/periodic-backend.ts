import type { Clock, Timer } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import { AddressWatch, type AddressWatchOptions } from '../address-watch.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';

export interface PeriodicOptions {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From the end of a full sync to the next. */
  readonly periodMs: number;
  readonly addresses: Pick<AddressWatchOptions, 'addresses' | 'relevant'>;
  readonly requestFullSync: () => void;
  /** Called after the backend was closed. */
  readonly onClose: () => Promise<void>;
}

/**
 * A backend that has everything compared with the kernel every period, since nothing tells when somebody else changes
 * virtual servers, sets or rules, and as soon as the node gets or loses an address.
 */
export class PeriodicBackend implements Backend {
  readonly family: Family;
  readonly #options: PeriodicOptions;
  #timer: Timer | undefined;
  #watch: AddressWatch | undefined;
  #isClosed = false;

  constructor(options: PeriodicOptions) {
    this.#options = options;
    this.family = options.backend.family;
  }

  async sync(request: SyncRequest): Promise<SyncResult> {
    const { backend, clock, logger, periodMs, addresses, requestFullSync } = this.#options;
    this.#watch ??= new AddressWatch({ ...addresses, clock, logger, onChange: requestFullSync });
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
    this.#watch?.close();
    await this.#options.backend.close();
    await this.#options.onClose();
  }
}
