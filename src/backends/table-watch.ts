import type { NftClient, Subscription } from '../kernel/nft/client.ts';
import type { NftEvent } from '../kernel/nft/events.ts';
import type { TableRef } from '../kernel/nft/objects.ts';
import { processText } from '../kernel/process-name.ts';
import { systemFiles } from '../kernel/system-files.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../obs/log.ts';
import { LastingSubscription } from './lasting-subscription.ts';
import type { ForeignChange } from './repairs.ts';

export interface TableWatchOptions {
  readonly client: NftClient;
  readonly table: TableRef;
  /** A set that the kernel fills: its elements are not reported. */
  readonly unwatched?: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onChange: (change: ForeignChange) => void;
}

const unknownChange: ForeignChange = { objects: new Map(), by: 'unknown' };

type ObjectEvent = Exclude<NftEvent, { type: 'generation' }>;

/** Reports changes of a table of ours by other programs, one report for each transaction. */
export class TableWatch {
  readonly #options: TableWatchOptions;
  readonly #subscription: LastingSubscription<Subscription>;
  /** Changes of the transaction whose events are coming in. */
  #noted = new Map<string, number>();
  #sets = new Set<string>();
  /** Only rules, chains, elements and flowtables changed so far. */
  #isLayoutIntact = true;

  constructor(options: TableWatchOptions) {
    const { client, table, clock, logger, onChange } = options;
    this.#options = options;
    const onUnknown = () => onChange(unknownChange);
    this.#subscription = new LastingSubscription({
      topic: 'nftables changes',
      open: (failed) => client.subscribe({ event: (event) => this.#take(event), overrun: onUnknown, failed }),
      onReopened: onUnknown,
      clock,
      logger,
      details: { table: `${table.family} ${table.name}` },
    });
  }

  close(): void {
    this.#subscription.close();
  }

  #take(event: NftEvent): void {
    if (event.type !== 'generation') {
      if (this.#isAbout(event)) this.#note(event);
      return;
    }
    if (this.#noted.size === 0) return;
    const objects = this.#noted;
    const suspects = this.#isLayoutIntact ? this.#sets : undefined;
    this.#noted = new Map();
    this.#sets = new Set();
    this.#isLayoutIntact = true;
    this.#options.onChange({
      objects,
      by: processText(event, systemFiles),
      ...(suspects && { suspects }),
    });
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
    } else if (event.kind !== 'rule' && event.kind !== 'chain' && event.kind !== 'flowtable') {
      this.#isLayoutIntact = false;
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
