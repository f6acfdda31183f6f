import { NftBatch } from '../kernel/nft/batch.ts';
import type { NftClient } from '../kernel/nft/client.ts';
import { countInSet, originalDestination } from '../kernel/nft/counting.ts';
import type { Expr } from '../kernel/nft/expr.ts';
import { types, word } from '../kernel/nft/fields.ts';
import type { Chain, Counted, Element, NftSet, TableRef } from '../kernel/nft/objects.ts';
import { type AddressKey, ipv6Key } from '../model/address-key.ts';
import type { Family } from '../model/ip.ts';
import { watchingTables } from '../model/watching-table.ts';
import { isFromLoopback, ownTable } from './watching-rules.ts';

/** After all rules that may rewrite or drop the packet, before the connection is confirmed. */
const PRIORITY = 300;
/** Bits of a connection's status. */
const CONFIRMED = 0x8;
const DST_NAT = 0x20;
const DYING = 0x200;
/** Each destination has up to four elements. */
const maxElements = 262_144;
const elementsAtOnce = 2_000;

/**
 * What packets are counted as. The first packet of a connection comes before the kernel confirms the connection. A reset
 * as the only answer ends the connection at once.
 */
export const kinds = ['first', 'out', 'back', 'reset'] as const;
export type Kind = (typeof kinds)[number];

/** The packets of one kind to or from one destination since the table was made. */
export interface CountedDestination extends Counted {
  readonly address: AddressKey;
  readonly port: number;
  /** IP protocol number. */
  readonly protocol: number;
  readonly kind: Kind;
}

/** nf_tables, as far as counting needs it. */
export type CountingClient = Pick<NftClient, 'commit' | 'listElements'>;

/**
 * A table whose rules count the packets of connections with a rewritten destination, by that destination. An element is
 * added by the first packet, so only destinations with traffic have some. The table belongs to the socket of the client,
 * and goes with it.
 */
export class CountingTable {
  readonly #nft: CountingClient;
  readonly #family: Family;
  readonly #countsBytes: boolean;
  readonly #table: TableRef;
  readonly #set: NftSet;

  /** Without `countsBytes`, only `first` and `reset` are counted: for most packets, that is a single comparison. */
  constructor(nft: CountingClient, family: Family, countsBytes: boolean) {
    this.#nft = nft;
    this.#family = family;
    this.#countsBytes = countsBytes;
    this.#table = ownTable(family, watchingTables.meter);
    this.#set = {
      table: this.#table,
      name: 'counted',
      key: [
        family === 'IPv4' ? types.ipv4Addr : types.ipv6Addr,
        types.inetProto,
        types.inetService,
        // Bits of the status. `nft list` aborts at a value of type ct_status with two bits in a key of several fields.
        types.mark,
        types.ctDirection,
      ],
      flags: ['dynamic'],
      size: maxElements,
    };
  }

  /**
   * Adds the table. Every packet passes one of its rules once: on its way out, or where it is delivered here if it came
   * from elsewhere. Rejects with NftError when the kernel refuses it.
   */
  async create(): Promise<void> {
    const batch = new NftBatch().add('table', { ...this.#table, isOwned: true }).add('set', this.#set);
    for (const hook of ['postrouting', 'input'] as const) {
      const chain: Chain = {
        table: this.#table,
        name: hook,
        base: { type: 'filter', hook, priority: PRIORITY },
      };
      batch.add('chain', chain);
      batch.add('rule', { chain, exprs: this.#count(hook === 'input' ? isFromLoopback('neq') : []) });
    }
    await this.#nft.commit(batch);
  }

  /** Counts the packet if its connection has a rewritten destination. The test that most packets fail comes first. */
  #count(isFromElsewhere: readonly Expr[]): Expr[] {
    const next = this.#family === 'IPv4' ? 1 : 4;
    const status = next + 2;
    const isWanted = (mask: number, unwanted: number): Expr[] => [
      { kind: 'bitwise', sreg: status, dreg: 0, mask: word(mask), xor: word(0) },
      { kind: 'cmp', op: 'neq', sreg: 0, value: word(unwanted) },
    ];
    const isFirstOrReset = isWanted(CONFIRMED | DYING, CONFIRMED);
    return [
      ...(this.#countsBytes ? isFromElsewhere : []),
      { kind: 'ct', key: 'status', dreg: status },
      ...(this.#countsBytes ? [] : [...isFirstOrReset, ...isFromElsewhere]),
      ...isWanted(DST_NAT, 0),
      originalDestination(this.#family, 0),
      { kind: 'meta', key: 'l4proto', dreg: next },
      originalDestination('port', next + 1),
      { kind: 'bitwise', sreg: status, dreg: status, mask: word(CONFIRMED | DYING), xor: word(0) },
      { kind: 'ct', key: 'direction', dreg: status + 1 },
      countInSet(this.#set, 0),
    ];
  }

  /**
   * Visits what was counted so far; packets that add elements meanwhile may hide others, or show them twice. The visitor
   * returns false for a destination that nobody asks for. When the set is half full, these are removed.
   */
  async read(visit: (counted: CountedDestination) => boolean): Promise<void> {
    let found = 0;
    const unwanted: Element[] = [];
    await this.#nft.listElements(
      this.#set,
      (elements) => {
        for (const { key, counted } of elements) {
          found++;
          const kind = this.#kindOf(key);
          if (kind && counted && !visit({ ...this.#destinationOf(key), kind, ...counted }))
            unwanted.push({ key });
        }
      },
      { isApproximate: true },
    );
    if (found >= maxElements / 2) await this.#remove(unwanted);
  }

  async #remove(elements: readonly Element[]): Promise<void> {
    for (let from = 0; from < elements.length; from += elementsAtOnce) {
      const some = elements.slice(from, from + elementsAtOnce);
      await this.#nft.commit(new NftBatch().deleteElements(this.#set, some));
    }
  }

  #destinationOf(key: Uint8Array): Pick<CountedDestination, 'address' | 'protocol' | 'port'> {
    const view = new DataView(key.buffer, key.byteOffset, key.byteLength);
    const isIPv4 = this.#family === 'IPv4';
    const end = isIPv4 ? 4 : 16;
    const address = isIPv4 ? view.getUint32(0) : ipv6Key(key, 0);
    return { address, protocol: view.getUint8(end), port: view.getUint16(end + 4) };
  }

  #kindOf(key: Uint8Array): Kind | undefined {
    const isBack = key.at(-4) === 1;
    const [status] = new Uint32Array(key.slice(-8, -4).buffer);
    if (status === 0) return 'first';
    if (status === CONFIRMED) return isBack ? 'back' : 'out';
    return isBack ? 'reset' : undefined;
  }
}
