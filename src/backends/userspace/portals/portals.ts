import { NftBatch } from '../../../kernel/nft/batch.ts';
import type { NftClient } from '../../../kernel/nft/client.ts';
import type { Family } from '../../../model/ip.ts';
import type { UserspaceSettings } from '../settings.ts';
import { meaningOf, type PortalElement, placeOf } from './elements.ts';
import { type PortalSetName, portalSet, portalSetDefinition, portalTable, setNames } from './layout.ts';
import { portalChains } from './rules.ts';

const tableComment = 'rules for kube-proxy in userspace mode';

interface Held {
  readonly element: PortalElement;
  readonly count: number;
}

/** The nftables table that sends packets for service addresses to proxy sockets. */
export class Portals {
  readonly #settings: UserspaceSettings;
  readonly #client: NftClient;
  /** What the kernel holds, by place, and how many services asked for it. */
  #held = new Map<string, Held>();

  constructor(settings: UserspaceSettings, client: NftClient) {
    this.#settings = settings;
    this.#client = client;
  }

  /** Has the kernel validate the table without applying it; rejects when it would not take it. */
  async check(): Promise<void> {
    await this.#client.check(this.#wholeTable([]));
  }

  /** Encodes elements as for a commit; throws when one cannot be encoded. */
  encode(elements: Iterable<PortalElement>): void {
    addElements(new NftBatch(), this.#settings.family, elements);
  }

  /** Replaces the whole table, whatever it holds, in one transaction. */
  async replace(elements: Iterable<PortalElement>): Promise<void> {
    this.#held = new Map();
    for (const element of elements) this.#hold(placeOf(element), element);
    await this.#client.commit(this.#wholeTable([...this.#held.values()].map(({ element }) => element)));
  }

  /**
   * Takes elements away and adds others, in one transaction. When that fails the table is in an unknown state to us,
   * and is to be replaced.
   */
  async change(removed: Iterable<PortalElement>, added: Iterable<PortalElement>): Promise<void> {
    const before = new Map<string, PortalElement | undefined>();
    const note = (place: string): void => {
      if (!before.has(place)) before.set(place, this.#held.get(place)?.element);
    };
    for (const element of removed) {
      const place = placeOf(element);
      note(place);
      this.#drop(place);
    }
    for (const element of added) {
      const place = placeOf(element);
      note(place);
      this.#hold(place, element);
    }
    const batch = this.#difference(before);
    if (batch.operations.length > 0) await this.#client.commit(batch);
  }

  #hold(place: string, element: PortalElement): void {
    this.#held.set(place, { element, count: (this.#held.get(place)?.count ?? 0) + 1 });
  }

  #drop(place: string): void {
    const held = this.#held.get(place);
    if (!held) return;
    if (held.count > 1) this.#held.set(place, { ...held, count: held.count - 1 });
    else this.#held.delete(place);
  }

  #difference(before: ReadonlyMap<string, PortalElement | undefined>): NftBatch {
    const { family } = this.#settings;
    const gone: PortalElement[] = [];
    const added: PortalElement[] = [];
    for (const [place, old] of before) {
      const element = this.#held.get(place)?.element;
      if (old && element && meaningOf(old) === meaningOf(element)) continue;
      if (old) gone.push(old);
      if (element) added.push(element);
    }
    const batch = new NftBatch();
    for (const [set, list] of bySet(gone)) batch.deleteElements(portalSet(family, set), list.map(keyOnly));
    return addElements(batch, family, added);
  }

  #wholeTable(elements: Iterable<PortalElement>): NftBatch {
    const { family } = this.#settings;
    const table = portalTable(family);
    const batch = new NftBatch();
    batch.destroy('table', table).add('table', { ...table, comment: tableComment });
    for (const name of setNames) batch.add('set', portalSetDefinition(family, name));
    const chains = portalChains(this.#settings);
    for (const { name, base } of chains) batch.add('chain', { table, name, ...(base && { base }) });
    for (const { name, rules } of chains) {
      for (const exprs of rules) batch.add('rule', { chain: { table, name }, exprs });
    }
    return addElements(batch, family, elements);
  }
}

function addElements(batch: NftBatch, family: Family, elements: Iterable<PortalElement>): NftBatch {
  for (const [set, list] of bySet(elements)) {
    batch.addElements(
      portalSet(family, set),
      list.map(({ element }) => element),
    );
  }
  return batch;
}

function bySet(elements: Iterable<PortalElement>): Map<PortalSetName, PortalElement[]> {
  return Map.groupBy(elements, ({ set }) => set);
}

function keyOnly({ element: { key, keyEnd, intervalEnd } }: PortalElement): PortalElement['element'] {
  return { key, ...(keyEnd && { keyEnd }), ...(intervalEnd && { intervalEnd }) };
}
