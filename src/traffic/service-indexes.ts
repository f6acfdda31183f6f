import type { TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import type { Clock } from '../lib/clock.ts';
import { asError } from '../lib/thrown.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import type { Family } from '../model/ip.ts';
import type { PlanFeed } from './plan-feed.ts';
import { type ObservedService, ServiceIndex } from './service-index.ts';

/** The service ports of all families by their destinations. They follow the plans. */
export class ServiceIndexes {
  readonly byFamily: ReadonlyMap<Family, ServiceIndex>;
  readonly #feeds: readonly PlanFeed[];
  readonly #clock: Clock;
  readonly #endings: (() => void)[] = [];
  #last: Promise<void> = Promise.resolve();

  constructor(feeds: readonly PlanFeed[], clock: Clock) {
    this.#feeds = feeds;
    this.#clock = clock;
    this.byFamily = new Map(feeds.map((feed) => [feed.family, new ServiceIndex(feed)]));
  }

  /** Reads every plan, in slices of time, and follows changes. `onFailure` is called when that is over. */
  async start(timeSlice: TimeSlice, onFailure: (error: Error) => void): Promise<void> {
    for (const feed of this.#feeds) {
      const index = this.byFamily.get(feed.family);
      this.#endings.push(
        feed.followPlans((keys) => {
          this.#last = this.#last
            .then(() => this.#update(index, [...keys]))
            .catch((error) => onFailure(asError(error)));
        }),
      );
      await index?.build(timeSlice);
    }
  }

  /** The service port that a flow goes through. */
  find(flow: TrackedFlow): ObservedService | undefined {
    return this.byFamily.get(flow.family)?.find(flow);
  }

  /** Takes over the addresses of the node, and forgets what has been gone for long enough. */
  refresh(ownAddresses: readonly string[]): void {
    for (const index of this.byFamily.values()) {
      index.prune(this.#clock.monotonic());
      index.setOwnAddresses(ownAddresses);
    }
  }

  close(): void {
    for (const end of this.#endings) end();
  }

  /** In slices of time: after a change of everything, there are many. */
  async #update(index: ServiceIndex | undefined, keys: readonly string[]): Promise<void> {
    const timeSlice = new TimeSlice(this.#clock);
    for (const key of keys) {
      index?.update(key, this.#clock.monotonic());
      if (timeSlice.isSpent) await timeSlice.yield();
    }
  }
}
