import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { TimeSlice } from '../lib/time-slice.ts';
import type { Family } from '../model/ip.ts';
import type { PlanFeed } from './plan-feed.ts';
import { type RefusalKernel, RefusalLog } from './refusal-log.ts';
import { type Decider, Refusals, type RefusedConnection } from './refusals.ts';
import type { ServiceIndex } from './service-index.ts';

export interface RefusalWatchOptions {
  readonly feeds: readonly PlanFeed[];
  readonly indexes: ReadonlyMap<Family, ServiceIndex>;
  readonly kernel: {
    /** Names of interfaces by their number. */
    interfaces(): Promise<ReadonlyMap<number, string>>;
    /** Rejects when the kernel does not let us. */
    openRefusals(): Promise<RefusalKernel>;
  };
  readonly decider: (family: Family) => Decider;
  readonly onRefused: (refused: RefusedConnection) => void;
  readonly clock: Clock;
}

/** Notices connections that the proxy refuses. Where the kernel cannot do that, `failure` says why. */
export class RefusalWatch {
  readonly #options: RefusalWatchOptions;
  #log: RefusalLog | undefined;
  #failure: string | undefined;

  constructor(options: RefusalWatchOptions) {
    this.#options = options;
  }

  async start(timeSlice: TimeSlice): Promise<void> {
    const { feeds, kernel } = this.#options;
    const failed = (error: unknown) => {
      this.#failure ??= messageOf(error);
    };
    const refusals = new Refusals({ ...this.#options, interfaces: () => kernel.interfaces() });
    try {
      this.#log = new RefusalLog(await kernel.openRefusals(), {
        packet: (packet) => void refusals.take(packet).catch(failed),
        failed,
      });
      await this.#log.start(feeds, timeSlice);
    } catch (error) {
      this.close();
      failed(error);
    }
  }

  /** Why refused connections are not noticed, or not all; undefined when all are. */
  get failure(): string | undefined {
    return this.#failure;
  }

  close(): void {
    this.#log?.close();
    this.#log = undefined;
  }
}
