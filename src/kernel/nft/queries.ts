import { NetlinkError } from '../netlink/error.ts';
import type { NetlinkMessage } from '../netlink/reader.ts';
import type { NetlinkRequest, NetlinkSocket } from '../netlink/socket.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import type { Generation, ListElementsOptions } from './client.ts';
import { readElements, writeElement, writeElementListRef } from './codec/element.ts';
import { readChain, readCounterObject, readRule, readTable, writeTableRef } from './codec/objects.ts';
import { readSet } from './codec/set.ts';
import {
  familyNumbers,
  messageType,
  NFT_MSG,
  NFT_OBJECT_COUNTER,
  NFTA_OBJ,
  NFTA_RULE,
  NFTA_SET,
  NFTA_SET_ELEM_LIST,
  type NftMessageKind,
} from './constants.ts';
import { NftError } from './errors.ts';
import { readGeneration } from './event-decoder.ts';
import type {
  Chain,
  Counter,
  Element,
  NftFamily,
  Rule,
  SetInfo,
  SetRef,
  Table,
  TableRef,
} from './objects.ts';

/** The reading half of NftClient, over one socket. */

export async function getGeneration(socket: NetlinkSocket): Promise<Generation> {
  let generation: Generation = { id: 0, pid: 0, processName: '' };
  const request = requestOf('get generation', NFT_MSG.GETGEN, undefined, () => {});
  await translated(
    socket.request(request, (message) => {
      generation = readGeneration(message);
    }),
  );
  return generation;
}

export function listTables(socket: NetlinkSocket, family?: NftFamily): Promise<Table[]> {
  return list(
    socket,
    requestOf('list tables', NFT_MSG.GETTABLE, family, () => {}),
    readTable,
  );
}

export async function getTable(socket: NetlinkSocket, table: TableRef): Promise<Table | undefined> {
  let found: Table | undefined;
  const request = requestOf('get table', NFT_MSG.GETTABLE, table.family, (w) => writeTableRef(w, table));
  await unlessMissing(
    socket.request(request, (message) => {
      found = readTable(message);
    }),
  );
  return found;
}

export async function listChains(socket: NetlinkSocket, table: TableRef): Promise<Chain[]> {
  // The kernel cannot narrow this down to a table.
  const chains = await list(
    socket,
    requestOf('list chains', NFT_MSG.GETCHAIN, table.family, () => {}),
    readChain,
  );
  return chains.filter((chain) => chain.table.name === table.name);
}

export function listRules(socket: NetlinkSocket, table: TableRef, chain?: string): Promise<Rule[]> {
  const request = requestOf('list rules', NFT_MSG.GETRULE, table.family, (writer) => {
    writer.string(NFTA_RULE.TABLE, table.name);
    if (chain !== undefined) writer.string(NFTA_RULE.CHAIN, chain);
  });
  return list(socket, request, readRule);
}

export function listSets(socket: NetlinkSocket, table: TableRef): Promise<SetInfo[]> {
  const request = requestOf('list sets', NFT_MSG.GETSET, table.family, (writer) =>
    writer.string(NFTA_SET.TABLE, table.name),
  );
  return list(socket, request, readSet);
}

export async function listElements(
  socket: NetlinkSocket,
  set: SetRef,
  onElements: (elements: readonly Element[], restarted: boolean) => void,
  { isApproximate = false }: ListElementsOptions = {},
): Promise<void> {
  const request = requestOf('list elements', NFT_MSG.GETSETELEM, set.table.family, (writer) =>
    writeElementListRef(writer, set),
  );
  const seen = new Set<string>();
  let count = 0;
  const handler = {
    message: (message: NetlinkMessage) => {
      const elements = readElements(message);
      if (!isApproximate) for (const element of elements) seen.add(identity(element));
      count += elements.length;
      if (elements.length > 0) onElements(elements, false);
    },
    restart: () => {
      seen.clear();
      count = 0;
      onElements([], true);
    },
    // The kernel continues a dump by position. When it enlarges the set's hash table meanwhile, which it does in its
    // own time after many elements were added, as many elements come twice as are left out, and it does not say so.
    isConsistent: () => isApproximate || seen.size === count,
  };
  await translated(socket.dump(request, handler));
}

export async function getElement(
  socket: NetlinkSocket,
  set: SetRef,
  key: Uint8Array,
): Promise<Element | undefined> {
  let found: Element | undefined;
  const request = requestOf('get element', NFT_MSG.GETSETELEM, set.table.family, (writer) => {
    writeElementListRef(writer, set);
    const list = writer.beginNested(NFTA_SET_ELEM_LIST.ELEMENTS);
    writeElement(writer, { key });
    writer.endNested(list);
  });
  await unlessMissing(
    socket.request(request, (message) => {
      found = readElements(message)[0];
    }),
  );
  return found;
}

/** What no two elements of a set have in common. */
function identity({ key, keyEnd, intervalEnd }: Element): string {
  const text = Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1');
  if (!keyEnd && !intervalEnd) return text;
  return `${text} ${intervalEnd ?? false} ${keyEnd ? Buffer.from(keyEnd).toString('latin1') : ''}`;
}

export async function listCounters(
  socket: NetlinkSocket,
  table: TableRef,
  reset: boolean,
): Promise<Counter[]> {
  const kind = reset ? NFT_MSG.GETOBJ_RESET : NFT_MSG.GETOBJ;
  const request = requestOf('list counters', kind, table.family, (writer) => {
    writer.string(NFTA_OBJ.TABLE, table.name);
    writer.u32Be(NFTA_OBJ.TYPE, NFT_OBJECT_COUNTER);
  });
  const counters = new Map<string, Counter>();
  const handler = {
    message: (reply: NetlinkMessage) => {
      const counter = readCounterObject(reply);
      if (counter) counters.set(counter.name, reset ? sum(counters.get(counter.name), counter) : counter);
    },
    restart: () => {
      // A disturbed dump has zeroed what it read: with `reset` the first reading must not be forgotten.
      if (!reset) counters.clear();
    },
  };
  await unlessMissing(socket.dump(request, handler));
  return [...counters.values()];
}

async function list<T>(
  socket: NetlinkSocket,
  request: NetlinkRequest,
  read: (message: NetlinkMessage) => T,
): Promise<T[]> {
  const found: T[] = [];
  const handler = {
    message: (message: NetlinkMessage) => void found.push(read(message)),
    restart: () => {
      found.length = 0;
    },
  };
  await unlessMissing(socket.dump(request, handler));
  return found;
}

function requestOf(
  name: string,
  kind: NftMessageKind,
  family: NftFamily | undefined,
  write: (writer: MessageWriter) => void,
): NetlinkRequest {
  return {
    name,
    type: messageType(kind),
    write(writer) {
      writer.nfgenmsg(family === undefined ? 0 : familyNumbers[family]);
      write(writer);
    },
  };
}

/** Missing tables, chains and sets have nothing to list. */
async function unlessMissing(answer: Promise<void>): Promise<void> {
  try {
    await translated(answer);
  } catch (error) {
    if (!(error instanceof NftError && error.errno === 'ENOENT')) throw error;
  }
}

async function translated(answer: Promise<void>): Promise<void> {
  try {
    await answer;
  } catch (error) {
    if (!(error instanceof NetlinkError)) throw error;
    throw new NftError(error.action, [{ errno: error.code, text: error.text }], { cause: error });
  }
}

function sum(earlier: Counter | undefined, later: Counter): Counter {
  if (!earlier) return later;
  return {
    ...later,
    packets: (earlier.packets ?? 0n) + (later.packets ?? 0n),
    bytes: (earlier.bytes ?? 0n) + (later.bytes ?? 0n),
  };
}
