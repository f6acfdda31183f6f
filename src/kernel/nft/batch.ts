import { hostLittleEndian } from '../../native/byte-order.ts';
import {
  maxAttributeLength,
  NLM_F_ACK,
  NLM_F_APPEND,
  NLM_F_CREATE,
  NLM_F_EXCL,
  NLM_F_REQUEST,
} from '../netlink/constants.ts';
import { MessageWriter } from '../netlink/writer.ts';
import { elementIndexAt, elementsAt, writeElement, writeElementListRef } from './codec/element.ts';
import { writeRule } from './codec/objects.ts';
import {
  familyNumbers,
  messageType,
  NFNL_BATCH_GENID,
  NFNL_MSG_BATCH_BEGIN,
  NFNL_MSG_BATCH_END,
  NFT_MSG,
  NFTA_SET_ELEM_LIST,
  type NftMessageKind,
  nftSubsystem,
} from './constants.ts';
import type { Element, Rule, SetRef } from './objects.ts';
import {
  type Addable,
  type Deletable,
  type Destroyable,
  type Flushable,
  type Operation,
  tableOf,
} from './operation.ts';
import {
  deleteMessages,
  destroyWriters,
  flushMessages,
  flushWriters,
  newMessages,
  newWriters,
  refWriters,
} from './verbs.ts';

export interface BatchOptions {
  /** Bytes to set aside; the buffer grows as needed. */
  readonly capacity?: number;
}

/** An operation and where its message stands. */
type Entry = Operation & { readonly offset: number };

/**
 * The elements of a message are asked for only when it is refused: they are then read from its bytes. To keep half a
 * million of them until the commit would double what the batch costs.
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

/** Numbers for sets that the caller left unnumbered start here, away from those that callers choose. */
const firstAutomaticSetId = 0x40000000;
const CREATE_EXCL = NLM_F_CREATE | NLM_F_EXCL;
/** Where the batch's first message has the generation id. */
const generationOffset = 24;
/** Where a message has its flags. */
const flagsOffset = 6;

/**
 * A transaction under construction, in nft's verbs. Each call writes its messages at once; a call that throws
 * (RangeError: a name, comment or set declaration that nf_tables or nft would not take) leaves the batch as it was.
 *
 * - `add` succeeds when the object is already there, and does not change it; `create` fails then.
 * - `delete` fails when the object is missing; `destroy` does not.
 */
export class NftBatch {
  readonly #writer: MessageWriter;
  readonly #entries: Entry[] = [];
  readonly #newWriters = newWriters(() => this.#setId++);
  #setId = firstAutomaticSetId;
  #generation = 0;

  constructor(options: BatchOptions = {}) {
    this.#writer = new MessageWriter(options.capacity ?? 65536);
    this.#mark(NFNL_MSG_BATCH_BEGIN, 0, () => this.#writer.u32Be(NFNL_BATCH_GENID, 0));
  }

  /** One entry per message; an empty batch needs no commit. */
  get operations(): readonly Operation[] {
    return this.#entries;
  }

  /** Bytes so far. */
  get length(): number {
    return this.#writer.length;
  }

  /** What `expectGeneration` was told last; 0 when anything will do. */
  get expectedGeneration(): number {
    return this.#generation;
  }

  /** Makes the commit fail with ERESTART unless the ruleset is still at this generation. */
  expectGeneration(generation: number): this {
    this.#generation = generation;
    return this;
  }

  add<K extends keyof Addable>(kind: K, object: Addable[K]): this {
    return this.#new({ verb: 'add', kind, object }, NLM_F_CREATE, kind, object);
  }

  create<K extends keyof Addable>(kind: K, object: Addable[K]): this {
    return this.#new({ verb: 'create', kind, object }, CREATE_EXCL, kind, object);
  }

  /** Puts a rule first in its chain, or before the rule at `position`. */
  insert(kind: 'rule', rule: Rule): this {
    const operation: Operation = { verb: 'insert', kind, object: rule };
    return this.#message(operation, NFT_MSG.NEWRULE, NLM_F_CREATE, () => writeRule(this.#writer, rule));
  }

  delete<K extends keyof Deletable>(kind: K, object: Deletable[K]): this {
    const operation: Operation = { verb: 'delete', kind, object };
    return this.#message(operation, deleteMessages[kind], 0, () => refWriters[kind](this.#writer, object));
  }

  /** Adds and deletes: messages that do it at once came with kernel 6.3. */
  destroy<K extends keyof Destroyable>(kind: K, object: Addable[K]): this {
    const operation: Operation = { verb: 'destroy', kind, object };
    const write = () => destroyWriters[kind](this.#writer, object);
    return this.#atomically(() => {
      this.#new(operation, NLM_F_CREATE, kind, object);
      this.#message(operation, deleteMessages[kind], 0, write);
    });
  }

  flush<K extends keyof Flushable>(kind: K, object: Flushable[K]): this {
    const operation: Operation = { verb: 'flush', kind, object };
    return this.#message(operation, flushMessages[kind], 0, () => flushWriters[kind](this.#writer, object));
  }

  /** Adds elements; one that is there already, with the same data, is left alone. */
  addElements(set: SetRef, elements: Iterable<Element>): this {
    return this.#elements('add', set, elements, NFT_MSG.NEWSETELEM, NLM_F_CREATE);
  }

  createElements(set: SetRef, elements: Iterable<Element>): this {
    return this.#elements('create', set, elements, NFT_MSG.NEWSETELEM, CREATE_EXCL);
  }

  deleteElements(set: SetRef, elements: Iterable<Element>): this {
    return this.#elements('delete', set, elements, NFT_MSG.DELSETELEM, 0);
  }

  /**
   * The datagram to send; valid until the next call. The last operation asks for an acknowledgement, by which success
   * is told. Without `commit` the closing mark is left out: the kernel validates the batch and drops it.
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

  /** The element at an offset within the message of an operation. */
  elementAt(operationIndex: number, offset: number): Element | undefined {
    const entry = this.#entries[operationIndex];
    if (entry?.kind !== 'element') return undefined;
    return entry.elements?.[elementIndexAt(this.#writer.bytes(), entry.offset, offset)];
  }

  #new<K extends keyof Addable>(operation: Operation, flags: number, kind: K, object: Addable[K]): this {
    const allFlags = kind === 'rule' ? flags | NLM_F_APPEND : flags;
    return this.#message(operation, newMessages[kind], allFlags, () =>
      this.#newWriters[kind](this.#writer, object),
    );
  }

  #message(operation: Operation, kind: NftMessageKind, flags: number, write: () => void): this {
    return this.#atomically(() => {
      const offset = this.#begin(operation, kind, flags);
      write();
      this.#writer.endMessage();
      this.#entries.push({ ...operation, offset });
    });
  }

  /** Spreads elements over as many messages as the size of an attribute makes necessary. */
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

  /** Writes an element and those after it, as many as fit, and returns the first that did not. */
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

  /** The batch's first and last message. */
  #mark(type: number, sequence: number, write: () => void): void {
    this.#writer.beginMessage(type, NLM_F_REQUEST, sequence);
    this.#writer.nfgenmsg(0, nftSubsystem);
    write();
    this.#writer.endMessage();
  }

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
