import { hostLittleEndian } from '../../native/byte-order.ts';
import {
  maxAttributeLength,
  NLM_F_ACK,
  NLM_F_APPEND,
  NLM_F_CREATE,
  NLM_F_REQUEST,
} from '../netlink/constants.ts';
import { MessageWriter } from '../netlink/writer.ts';
import { elementIndexAt, elementsAt, writeElement, writeElementListRef } from './codec/element.ts';
import {
  familyNumbers,
  messageType,
  NFNL_BATCH_GENID,
  NFNL_MSG_BATCH_BEGIN,
  NFNL_MSG_BATCH_END,
  NFNL_SUBSYS_NFTABLES,
  NFT_MSG,
  NFTA_SET_ELEM_LIST,
  type NftMessageKind,
} from './constants.ts';
import type { Element, SetRef, Table } from './objects.ts';
import { type Addable, type Deletable, type Flushable, type Operation, tableOf } from './operation.ts';
import {
  deleteMessages,
  deleteWriters,
  flushMessages,
  flushWriters,
  newMessages,
  newWriters,
} from './verbs.ts';

/** An operation and the offset of its message. */
type Entry = Operation & { readonly offset: number };

/**
 * A message with elements. They are needed again only when the kernel refuses the message, and then read from its
 * bytes: keeping half a million elements until the commit would double the memory of a batch.
 */
class ElementEntry implements Entry {
  readonly verb: Operation['verb'];
  readonly kind = 'element';
  readonly object: SetRef;
  readonly offset: number;
  readonly #writer: MessageWriter;

  constructor(verb: Operation['verb'], set: SetRef, offset: number, writer: MessageWriter) {
    this.verb = verb;
    this.object = set;
    this.offset = offset;
    this.#writer = writer;
  }

  get elements(): readonly Element[] {
    return elementsAt(this.#writer.bytes(), this.offset);
  }
}

/** Sets that the caller did not number get numbers from here on, which callers do not use. */
const firstAutomaticSetId = 0x40000000;
const initialCapacity = 65536;
/** Offset of the generation id in the batch's first message. */
const generationOffset = 24;
/** Offset of the flags in a message. */
const flagsOffset = 6;

/**
 * A transaction under construction, in nft's verbs. Each call encodes its messages immediately. A call throws RangeError
 * for a name, comment or set declaration that nf_tables or nft does not accept, and then leaves the batch unchanged.
 *
 * - `add` succeeds when the object exists, and does not change it.
 * - `delete` fails when the object does not exist; `destroy` does not.
 */
export class NftBatch {
  readonly #writer = new MessageWriter(initialCapacity);
  readonly #entries: Entry[] = [];
  readonly #newWriters = newWriters(() => this.#setId++);
  #setId = firstAutomaticSetId;
  #generation = 0;

  constructor() {
    this.#mark(NFNL_MSG_BATCH_BEGIN, 0, () => this.#writer.u32Be(NFNL_BATCH_GENID, 0));
  }

  /** One per message; a batch without operations needs no commit. */
  get operations(): readonly Operation[] {
    return this.#entries;
  }

  /** Bytes encoded so far. */
  get length(): number {
    return this.#writer.length;
  }

  /** The generation of the last `expectGeneration`; 0 accepts any. */
  get expectedGeneration(): number {
    return this.#generation;
  }

  /** Makes the commit fail with ERESTART unless the ruleset is still at this generation. */
  expectGeneration(generation: number): this {
    this.#generation = generation;
    return this;
  }

  add<K extends keyof Addable>(kind: K, object: Addable[K]): this {
    return this.#add({ verb: 'add', kind, object }, kind, object);
  }

  delete<K extends keyof Deletable>(kind: K, object: Deletable[K]): this {
    return this.#delete({ verb: 'delete', kind, object }, kind, object);
  }

  /** Deletes a table if it exists: adds and deletes it, because only kernels from 6.3 on have a message for it. */
  destroy(kind: 'table', table: Table): this {
    const operation: Operation = { verb: 'destroy', kind, object: table };
    return this.#atomically(() => {
      this.#add(operation, kind, table);
      this.#delete(operation, kind, table);
    });
  }

  flush<K extends keyof Flushable>(kind: K, object: Flushable[K]): this {
    const operation: Operation = { verb: 'flush', kind, object };
    return this.#message(operation, flushMessages[kind], 0, () => flushWriters[kind](this.#writer, object));
  }

  /** Adds elements. An element that exists with the same data stays as it is. */
  addElements(set: SetRef, elements: Iterable<Element>): this {
    return this.#elements('add', set, elements, NFT_MSG.NEWSETELEM, NLM_F_CREATE);
  }

  deleteElements(set: SetRef, elements: Iterable<Element>): this {
    return this.#elements('delete', set, elements, NFT_MSG.DELSETELEM, 0);
  }

  /**
   * The datagram to send; valid until the next call. Its last operation requests an acknowledgement, which confirms
   * success. Without `commit` the closing mark is missing, so the kernel validates the batch and drops it.
   */
  encode(commit: boolean): Uint8Array {
    const end = this.#writer.length;
    if (commit) this.#mark(NFNL_MSG_BATCH_END, this.#entries.length + 1, () => {});
    const bytes = this.#writer.bytes();
    this.#writer.truncate(end);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    view.setUint32(generationOffset, this.#generation);
    const last = this.#entries.at(-1);
    if (last) {
      const flags = view.getUint16(last.offset + flagsOffset, hostLittleEndian);
      view.setUint16(last.offset + flagsOffset, flags | NLM_F_ACK, hostLittleEndian);
    }
    return bytes;
  }

  /** The element at a byte offset within the message of an operation; undefined when there is none. */
  elementAt(operationIndex: number, offset: number): Element | undefined {
    const entry = this.#entries[operationIndex];
    if (entry?.kind !== 'element') return undefined;
    return entry.elements?.[elementIndexAt(this.#writer.bytes(), entry.offset, offset)];
  }

  #add<K extends keyof Addable>(operation: Operation, kind: K, object: Addable[K]): this {
    const flags = kind === 'rule' ? NLM_F_CREATE | NLM_F_APPEND : NLM_F_CREATE;
    const write = () => this.#newWriters[kind](this.#writer, object);
    return this.#message(operation, newMessages[kind], flags, write);
  }

  #delete<K extends keyof Deletable>(operation: Operation, kind: K, object: Deletable[K]): this {
    return this.#message(operation, deleteMessages[kind], 0, () => deleteWriters[kind](this.#writer, object));
  }

  #message(operation: Operation, kind: NftMessageKind, flags: number, write: () => void): this {
    return this.#atomically(() => {
      const offset = this.#begin(operation, kind, flags);
      write();
      this.#writer.endMessage();
      this.#entries.push({ ...operation, offset });
    });
  }

  /** Writes elements into as many messages as the maximum size of an attribute requires. */
  #elements(
    verb: Operation['verb'],
    set: SetRef,
    elements: Iterable<Element>,
    kind: NftMessageKind,
    flags: number,
  ): this {
    return this.#atomically(() => {
      const source = elements[Symbol.iterator]();
      let next = source.next();
      while (next.done !== true) {
        const operation: Operation = { verb, kind: 'element', object: set };
        const offset = this.#begin(operation, kind, flags);
        next = this.#elementList(set, next, source);
        this.#writer.endMessage();
        this.#entries.push(new ElementEntry(verb, set, offset, this.#writer));
      }
    });
  }

  /** Writes as many elements as fit into one message, and returns the first that did not. */
  #elementList(
    set: SetRef,
    first: IteratorResult<Element>,
    source: Iterator<Element>,
  ): IteratorResult<Element> {
    const writer = this.#writer;
    writeElementListRef(writer, set);
    const list = writer.beginNested(NFTA_SET_ELEM_LIST.ELEMENTS);
    let next = first;
    for (; next.done !== true; next = source.next()) {
      const before = writer.length;
      writeElement(writer, next.value);
      if (writer.length - list > maxAttributeLength) {
        writer.truncate(before);
        break;
      }
    }
    writer.endNested(list);
    return next;
  }

  #begin(operation: Operation, kind: NftMessageKind, flags: number): number {
    const sequence = this.#entries.length + 1;
    const offset = this.#writer.beginMessage(messageType(kind), NLM_F_REQUEST | flags, sequence);
    this.#writer.nfgenmsg(familyNumbers[tableOf(operation).family]);
    return offset;
  }

  /** Writes the batch's first or last message. */
  #mark(type: number, sequence: number, write: () => void): void {
    this.#writer.beginMessage(type, NLM_F_REQUEST, sequence);
    this.#writer.nfgenmsg(0, NFNL_SUBSYS_NFTABLES);
    write();
    this.#writer.endMessage();
  }

  /** Takes back everything that `write` wrote if it throws. */
  #atomically(write: () => void): this {
    const length = this.#writer.length;
    const entries = this.#entries.length;
    try {
      write();
    } catch (error) {
      this.#writer.truncate(length);
      this.#entries.length = entries;
      throw error;
    }
    return this;
  }
}
