import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PacketLog, PacketLogListener } from '../kernel/nflog/client.ts';
import type { LoggedPacket } from '../kernel/nflog/codec.ts';
import type { NftClient } from '../kernel/nft/client.ts';
import type { TimeSlice } from '../lib/time-slice.ts';
import type { Family } from '../model/ip.ts';
import type { PlanFeed } from './plan-feed.ts';
import { RefusalTable } from './refusal-table.ts';

export interface RefusalKernel {
  /** What the names of the tables begin with. */
  readonly tablePrefix: string;
  /** Owns the tables. They may have been added with other rules before. */
  readonly nft: NftClient;
  openLog(listener: PacketLogListener): Promise<PacketLog>;
  close(): void;
}

export interface RefusalListener {
  packet(packet: LoggedPacket): void;
  /** From now on, not all refused connections are noticed. */
  failed(error: Error): void;
}

/** Plans to look at between two checks of the time slice. */
const plansAtOnce = 500;

/** Logs the first packets to destinations that may refuse them, and follows the plans. */
export class RefusalLog {
  readonly #kernel: RefusalKernel;
  readonly #listener: RefusalListener;
  readonly #tables = new Map<Family, RefusalTable>();
  readonly #endings: (() => void)[] = [];
  #log: PacketLog | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isOpen = true;

  constructor(kernel: RefusalKernel, listener: RefusalListener) {
    this.#kernel = kernel;
    this.#listener = listener;
  }

  /** Rejects when the kernel has no such log, or does not take the table. */
  async start(feeds: readonly PlanFeed[], timeSlice: TimeSlice): Promise<void> {
    const { packet, failed } = this.#listener;
    const { nft, tablePrefix } = this.#kernel;
    const overrun = () => failed(new Error('refused connections came faster than they could be counted'));
    this.#log = await this.#kernel.openLog({ packet, overrun, failed });
    for (const feed of feeds) {
      const table = new RefusalTable(nft, feed.family, tablePrefix);
      await table.create(this.#log.group);
      this.#tables.set(feed.family, table);
      this.#endings.push(feed.followPlans((keys) => this.#follow(feed, [...keys])));
      const keys = [...feed.plans.keys()];
      for (let from = 0; from < keys.length; from += plansAtOnce) {
        await this.#update(feed, keys.slice(from, from + plansAtOnce));
        if (timeSlice.isSpent) await timeSlice.yield();
      }
    }
  }

  async #update({ family, plans }: PlanFeed, keys: readonly string[]): Promise<void> {
    await this.#tables.get(family)?.update(keys.map((key) => [key, plans.get(key)]));
  }

  /** The tables go with the socket. */
  close(): void {
    this.#isOpen = false;
    for (const end of this.#endings) end();
    this.#log?.close();
    this.#kernel.close();
  }

  #follow(feed: PlanFeed, keys: readonly string[]): void {
    const update = async () => {
      for (let from = 0; from < keys.length && this.#isOpen; from += plansAtOnce) {
        await this.#update(feed, keys.slice(from, from + plansAtOnce));
        // Other work of the event loop runs in between.
        if (from > 0) await nextTurn();
      }
    };
    this.#last = this.#last.then(update).catch((error: Error) => {
      if (this.#isOpen) this.#listener.failed(error);
    });
  }
}
