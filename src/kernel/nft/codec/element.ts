import { hostLittleEndian } from '../../../native/byte-order.ts';
import { attributeHeaderLength, nfgenmsgLength } from '../../netlink/constants.ts';
import { type AttributeReader, NetlinkMessage } from '../../netlink/reader.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import {
  NFT_SET_ELEM_CATCHALL,
  NFT_SET_ELEM_INTERVAL_END,
  NFTA_COUNTER,
  NFTA_EXPR,
  NFTA_LIST_ELEM,
  NFTA_SET_ELEM,
  NFTA_SET_ELEM_LIST,
} from '../constants.ts';
import type { Counted, Element, SetRef } from '../objects.ts';
import { readUserdataText } from '../userdata.ts';
import { readValue, readVerdict, writeValue, writeVerdict } from './data.ts';
import { checkName, readTableRef, required, writeComment } from './objects.ts';

/** Set elements. This codec must be fast, because services and endpoints are elements. */

const commentRecord = 0;

/** Writes the reference to the set, which precedes the elements in a message. */
export function writeElementListRef(writer: MessageWriter, set: SetRef): void {
  writer.string(NFTA_SET_ELEM_LIST.TABLE, checkName('table', set.table.name));
  writer.string(NFTA_SET_ELEM_LIST.SET, checkName('set', set.name));
  if (set.id !== undefined) writer.u32Be(NFTA_SET_ELEM_LIST.SET_ID, set.id);
}

export function writeElement(writer: MessageWriter, element: Element): void {
  const nest = writer.beginNested(NFTA_LIST_ELEM);
  if (element.intervalEnd) writer.u32Be(NFTA_SET_ELEM.FLAGS, NFT_SET_ELEM_INTERVAL_END);
  if (element.timeoutMs !== undefined) writer.u64Be(NFTA_SET_ELEM.TIMEOUT, BigInt(element.timeoutMs));
  if (element.expiresMs !== undefined) writer.u64Be(NFTA_SET_ELEM.EXPIRATION, BigInt(element.expiresMs));
  writeValue(writer, NFTA_SET_ELEM.KEY, element.key);
  if (element.keyEnd) writeValue(writer, NFTA_SET_ELEM.KEY_END, element.keyEnd);
  if (element.data) writeValue(writer, NFTA_SET_ELEM.DATA, element.data);
  else if (element.verdict) writeVerdict(writer, NFTA_SET_ELEM.DATA, element.verdict);
  if (element.comment) writeComment(writer, NFTA_SET_ELEM.USERDATA, element.comment);
  writer.endNested(nest);
}

/** Asks for the element for all keys that no other element has. */
export function writeCatchAllRef(writer: MessageWriter): void {
  const nest = writer.beginNested(NFTA_LIST_ELEM);
  writer.u32Be(NFTA_SET_ELEM.FLAGS, NFT_SET_ELEM_CATCHALL);
  writer.endNested(nest);
}

/** The set that a message with elements refers to. */
export function readElementListRef(message: NetlinkMessage): SetRef {
  const reader = message.attributes(nfgenmsgLength);
  let table: string | undefined;
  let name: string | undefined;
  while (reader.next()) {
    if (reader.type === NFTA_SET_ELEM_LIST.TABLE) table = reader.string();
    else if (reader.type === NFTA_SET_ELEM_LIST.SET) name = reader.string();
  }
  return { table: readTableRef(message, table), name: required(name, 'elements', 'a set') };
}

/** The elements of a message. Skips catch-all elements, which have no key. */
export function readElements(message: NetlinkMessage): Element[] {
  return readAllElements(message).filter(({ key }) => key.length > 0);
}

/** The catch-all element of a message, with an empty key; undefined when it has none. */
export function readCatchAll(message: NetlinkMessage): Element | undefined {
  return readAllElements(message).find(({ key }) => key.length === 0);
}

function readAllElements(message: NetlinkMessage): Element[] {
  const elements: Element[] = [];
  const reader = message.attributes(nfgenmsgLength);
  while (reader.next()) {
    if (reader.type !== NFTA_SET_ELEM_LIST.ELEMENTS) continue;
    const list = reader.nested();
    while (list.next()) elements.push(readElement(list.nested()));
  }
  return elements;
}

/** The index of the element at an offset from the start of a message; -1 when there is none. */
export function elementIndexAt(batch: Uint8Array, messageStart: number, offset: number): number {
  const reader = messageAt(batch, messageStart).attributes(nfgenmsgLength);
  while (reader.next()) {
    if (reader.type !== NFTA_SET_ELEM_LIST.ELEMENTS) continue;
    const list = reader.nested();
    for (let index = 0; list.next(); index++) {
      if (offset >= list.offset && offset < list.offset + attributeHeaderLength + list.valueLength)
        return index;
    }
  }
  return -1;
}

/** The elements of the message that starts at an offset of a batch. */
export function elementsAt(batch: Uint8Array, messageStart: number): Element[] {
  return readElements(messageAt(batch, messageStart));
}

function messageAt(batch: Uint8Array, start: number): NetlinkMessage {
  const bytes = batch.subarray(start);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return new NetlinkMessage(view, 0, Math.min(view.getUint32(0, hostLittleEndian), bytes.length));
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const noKey = new Uint8Array(0);

/** The key is empty when the element has none. */
function readElement(reader: AttributeReader): Element {
  let key: Uint8Array | undefined;
  const rest: Partial<Writable<Element>> = {};
  while (reader.next()) {
    if (reader.type === NFTA_SET_ELEM.KEY) key = readValue(reader.nested());
    else readElementPart(reader, rest);
  }
  return { key: key ?? noKey, ...rest };
}

function readElementPart(reader: AttributeReader, element: Partial<Writable<Element>>): void {
  switch (reader.type) {
    case NFTA_SET_ELEM.KEY_END:
      assign(element, 'keyEnd', readValue(reader.nested()));
      break;
    case NFTA_SET_ELEM.DATA:
      assign(element, 'data', readValue(reader.nested()));
      if (!element.data) assign(element, 'verdict', readVerdict(reader.nested()));
      break;
    case NFTA_SET_ELEM.FLAGS:
      if (reader.u32Be() & NFT_SET_ELEM_INTERVAL_END) element.intervalEnd = true;
      break;
    case NFTA_SET_ELEM.TIMEOUT:
      element.timeoutMs = Number(reader.u64Be());
      break;
    case NFTA_SET_ELEM.EXPIRATION:
      element.expiresMs = Number(reader.u64Be());
      break;
    case NFTA_SET_ELEM.USERDATA:
      assign(element, 'comment', readUserdataText(reader.view(), commentRecord));
      break;
    case NFTA_SET_ELEM.EXPR:
      assign(element, 'counted', readCounted(reader.nested()));
      break;
  }
}

/** The values of a counter; undefined for other expressions. */
function readCounted(reader: AttributeReader): Counted | undefined {
  let isCounter = false;
  let packets = 0;
  let bytes = 0;
  while (reader.next()) {
    if (reader.type === NFTA_EXPR.NAME) isCounter = reader.string() === 'counter';
    else if (reader.type === NFTA_EXPR.DATA && isCounter) {
      for (const data = reader.nested(); data.next(); ) {
        if (data.type === NFTA_COUNTER.PACKETS) packets = data.count();
        else if (data.type === NFTA_COUNTER.BYTES) bytes = data.count();
      }
    }
  }
  return isCounter ? { packets, bytes } : undefined;
}

function assign<K extends keyof Element>(
  element: Partial<Writable<Element>>,
  field: K,
  value: Element[K] | undefined,
): void {
  if (value !== undefined) element[field] = value;
}
