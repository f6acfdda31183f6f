import { NftBatch } from '../../kernel/nft/batch.ts';
import type { TableRef } from '../../kernel/nft/objects.ts';
import type { Family } from '../../model/ip.ts';
import type { Bytes } from './bytes.ts';
import type { Value } from './compile.ts';
import { encodeElement, encodeKey } from './element-codec.ts';
import type { ElementSink } from './element-diff.ts';
import { type ChainBody, loopbackCounter, protocols } from './fixed-chains.ts';
import { type SetName, setDefinition, setRef, tableComment, tableOf } from './layout.ts';

/** Elements are handed to the batch in groups: one message holds about a thousand. */
const groupSize = 500;

/**
 * Elements stay strings until they are written: encoded ones take more objects. Keys and values are in separate
 * arrays: V8 would take pairs for long-lived objects and move all that follow to where only a full collection frees
 * them, which took 50 MB at 100,000 endpoints.
 */
interface PendingElements {
  readonly deleted: Bytes[];
  readonly added: Bytes[];
  /** Of those added, in the same order. */
  readonly values: Value[];
}

/** One atomic change of the table, in terms of this layout. */
export class Transaction implements ElementSink {
  readonly #family: Family;
  readonly #table: TableRef;
  readonly #batch: NftBatch;
  readonly #pending = new Map<SetName, PendingElements>();
  #elementOperations = 0;

  constructor(family: Family) {
    this.#family = family;
    this.#table = tableOf(family);
    this.#batch = new NftBatch();
  }

  /** Elements added and deleted so far. */
  get elementOperations(): number {
    return this.#elementOperations;
  }

  /** Creates the table unless it exists; with `anew`, deletes its content. */
  addTable(anew: boolean): void {
    const table = { ...this.#table, comment: tableComment };
    this.#batch.add('table', table);
    if (anew) this.#batch.delete('table', this.#table).add('table', table);
  }

  addSet(name: SetName): void {
    this.#batch.add('set', setDefinition(this.#family, name));
  }

  /** Deletes a set that no rule uses, with its elements. */
  deleteSet(name: SetName): void {
    this.#batch.delete('set', setRef(this.#family, name));
  }

  /** Takes all elements out of a set. */
  flushSet(name: SetName): void {
    this.#batch.flush('set', setRef(this.#family, name));
  }

  addLoopbackCounters(): void {
    for (const protocol of protocols) {
      this.#batch.add('counter', { table: this.#table, name: loopbackCounter(protocol) });
    }
  }

  addChain({ name, base }: ChainBody): void {
    this.#batch.add('chain', base ? { table: this.#table, name, base } : { table: this.#table, name });
  }

  /** Deletes chains that may refer to each other. */
  deleteChains(names: readonly string[]): void {
    for (const name of names) this.#batch.flush('chain', { table: this.#table, name });
    for (const name of names) this.#batch.delete('chain', { table: this.#table, name });
  }

  /** Replaces the rules of a chain. */
  refillChain({ name, rules }: ChainBody): void {
    const chain = { table: this.#table, name };
    this.#batch.flush('chain', chain);
    for (const exprs of rules) this.#batch.add('rule', { chain, exprs });
  }

  delete(set: SetName, key: Bytes): void {
    this.#queued(set, this.#pendingOf(set).deleted.push(key));
  }

  add(set: SetName, key: Bytes, value: Value): void {
    const { added, values } = this.#pendingOf(set);
    values.push(value);
    this.#queued(set, added.push(key));
  }

  /**
   * Ends a part of the transaction: later operations are applied after it. Within a part, do not add an element and
   * then delete it.
   */
  endPart(): void {
    for (const set of [...this.#pending.keys()]) this.#flush(set);
  }

  /** The batch to commit, with everything in it. */
  finish(): NftBatch {
    this.endPart();
    return this.#batch;
  }

  #pendingOf(set: SetName): PendingElements {
    const known = this.#pending.get(set);
    if (known) return known;
    const pending: PendingElements = { deleted: [], added: [], values: [] };
    this.#pending.set(set, pending);
    return pending;
  }

  #queued(set: SetName, waiting: number): void {
    this.#elementOperations++;
    if (waiting >= groupSize) this.#flush(set);
  }

  /** Deletions first: an element that changes its value is deleted and added again. */
  #flush(set: SetName): void {
    const pending = this.#pending.get(set);
    this.#pending.delete(set);
    if (!pending) return;
    const ref = setRef(this.#family, set);
    const { deleted, added, values } = pending;
    // Encoded lazily, so that no group of encoded elements lives long.
    this.#batch.deleteElements(ref, deleted.values().map(encodeKey));
    const encoded = added.values().map((key, i) => encodeElement(set, key, values[i] ?? ''));
    this.#batch.addElements(ref, encoded);
  }
}
