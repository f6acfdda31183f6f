import type { NftClient, Subscription } from '../kernel/nft/client.ts';
import type { NftEvent } from '../kernel/nft/events.ts';
import type { TableRef } from '../kernel/nft/objects.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import type { Logger } from '../obs/log.ts';
import type { ForeignChange } from './repairs.ts';

/** What somebody else did to a table of ours. */
export interface TableChange extends ForeignChange {
  /** Sets whose elements were added or deleted, when nothing else but rules and chains was; else undefined. */
  readonly sets?: ReadonlySet<string>;
}

export interface TableWatchOptions {
  readonly client: NftClient;
  readonly table: TableRef;
  /** A set that the kernel fills: its elements are not reported. */
  readonly unwatched?: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onChange: (change: TableChange) => void;
}

const resubscribeMs = 5_000;
const unknownChange: TableChange = { objects: new Map(), by: 'unknown' };

type ObjectEvent = Exclude<NftEvent, { type: 'generation' }>;

/** Tells when anybody but us changes a table of ours. */
export class TableWatch {
  readonly #options: TableWatchOptions;
  #subscription: Subscription | undefined;
  #retry: Timer | undefined;
  /** Changes of the transaction that is being told. */
  #noted = new Map<string, number>();
  #sets = new Set<string>();
  /** The table and its sets are still those that they were. */
  #isWhole = true;

  constructor(options: TableWatchOptions) {
    this.#options = options;
    this.#subscribe();
  }

  close(): void {
    this.#retry?.cancel();
    this.#subscription?.close();
  }

  #subscribe(): void {
    try {
      this.#subscription = this.#options.client.subscribe({
        event: (event) => this.#take(event),
        overrun: () => this.#options.onChange(unknownChange),
        failed: (error) => this.#lose(error),
      });
    } catch (error) {
      this.#lose(error);
    }
  }

  /** Nothing is known of what happens until the subscription is back, so that counts as a change too. */
  #lose(error: unknown): void {
    const { clock, logger, table, onChange } = this.#options;
    logger.error(error, 'No subscription to nftables changes; trying again', {
      table: `${table.family} ${table.name}`,
    });
    this.#subscription?.close();
    this.#subscription = undefined;
    this.#retry = clock.setTimeout(() => {
      this.#subscribe();
      if (this.#subscription) onChange(unknownChange);
    }, resubscribeMs);
  }

  #take(event: NftEvent): void {
    if (event.type !== 'generation') {
      if (this.#isAbout(event)) this.#note(event);
      return;
    }
    if (this.#noted.size === 0) return;
    const objects = this.#noted;
    const sets = this.#isWhole ? this.#sets : undefined;
    this.#noted = new Map();
    this.#sets = new Set();
    this.#isWhole = true;
    this.#options.onChange({ objects, by: `${event.processName}[${event.pid}]`, ...(sets && { sets }) });
  }

  #isAbout(event: ObjectEvent): boolean {
    const { table, unwatched } = this.#options;
    const { family, name } = tableOfEvent(event);
    if (family !== table.family || name !== table.name) return false;
    return event.kind !== 'element' || event.set.name !== unwatched;
  }

  #note(event: ObjectEvent): void {
    const what = `${event.kind} ${event.type === 'new' ? 'added' : 'deleted'}`;
    this.#noted.set(what, (this.#noted.get(what) ?? 0) + 1);
    if (event.kind === 'element') {
      this.#sets.add(event.set.name);
    } else if (event.kind !== 'rule' && event.kind !== 'chain') {
      this.#isWhole = false;
    }
  }
}

function tableOfEvent(event: ObjectEvent): TableRef {
  switch (event.kind) {
    case 'table':
      return event.object;
    case 'element':
      return event.set.table;
    case 'rule':
      return event.object.chain.table;
    default:
      return event.object.table;
  }
}
