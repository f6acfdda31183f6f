import type { NftClient, Subscription } from '../../../kernel/nft/client.ts';
import type { NftEvent } from '../../../kernel/nft/events.ts';
import type { TableRef } from '../../../kernel/nft/objects.ts';
import type { Clock, Timer } from '../../../lib/clock.ts';
import type { Family } from '../../../model/ip.ts';
import type { Logger } from '../../../obs/log.ts';
import type { ForeignChange } from '../../repairs.ts';
import { portalTable } from './layout.ts';

export interface PortalWatchOptions {
  readonly client: NftClient;
  readonly family: Family;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onChange: (change: ForeignChange) => void;
}

type ObjectEvent = Exclude<NftEvent, { type: 'generation' }>;

const resubscribeMs = 5_000;
const unknownChange: ForeignChange = { objects: new Map(), by: 'unknown' };

/** Tells when anybody but us changes our table. */
export class PortalWatch {
  readonly #options: PortalWatchOptions;
  readonly #table: TableRef;
  #subscription: Subscription | undefined;
  #retry: Timer | undefined;
  /** Changes of the transaction that is being told. */
  #noted = new Map<string, number>();

  constructor(options: PortalWatchOptions) {
    this.#options = options;
    this.#table = portalTable(options.family);
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
    const { clock, logger, family, onChange } = this.#options;
    logger.error(error, 'No subscription to nftables changes; trying again', { ip_family: family });
    this.#subscription?.close();
    this.#subscription = undefined;
    this.#retry = clock.setTimeout(() => {
      this.#subscribe();
      if (this.#subscription) onChange(unknownChange);
    }, resubscribeMs);
  }

  #take(event: NftEvent): void {
    if (event.type !== 'generation') {
      const { family, name } = tableOf(event);
      if (family !== this.#table.family || name !== this.#table.name) return;
      const what = `${event.kind} ${event.type === 'new' ? 'added' : 'deleted'}`;
      this.#noted.set(what, (this.#noted.get(what) ?? 0) + 1);
      return;
    }
    if (this.#noted.size === 0) return;
    const objects = this.#noted;
    this.#noted = new Map();
    this.#options.onChange({ objects, by: `${event.processName}[${event.pid}]` });
  }
}

function tableOf(event: ObjectEvent): TableRef {
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
