import { NetlinkError } from '../netlink/error.ts';
import type { NetlinkMessage } from '../netlink/reader.ts';
import type { NetlinkRequest, NetlinkSocket } from '../netlink/socket.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import type { Generation, ListElementsOptions } from './client.ts';
import {
  readCatchAll,
  readElements,
  writeCatchAllRef,
  writeElement,
  writeElementListRef,
} from './codec/element.ts';
import { readFlowtable } from './codec/flowtable.ts';
import {
  readChain,
  readCounterObject,
  readListedRule,
  readRule,
  readRuleTarget,
  readTable,
  writeTableRef,
} from './codec/objects.ts';
import { readSet } from './codec/set.ts';
import {
  familyNumbers,
  messageType,
  NFT_MSG,
  NFT_OBJECT_COUNTER,
  NFTA_FLOWTABLE,
  NFTA_OBJ,
  NFTA_RULE,
  NFTA_SET,
  NFTA_SET_ELEM_LIST,
  type NftMessageKind,
} from './constants.ts';
import { isNotFound, NftError } from './errors.ts';
import { readGeneration } from './event-decoder.ts';
import type {
  Chain,
  ChainRef,
  Counter,
  Element,
  Flowtable,
  ListedRule,
  NftFamily,
  Rule,
  RuleTarget,
  SetInfo,
  SetRef,
  Table,
  TableRef,
} from './objects.ts';

/** The reading half of NftClient, over one socket. */
export class NftQueries {
  readonly #socket: NetlinkSocket;

  constructor(socket: NetlinkSocket) {
    this.#socket = socket;
  }

  generation(): Promise<Generation> {
    return getGeneration(this.#socket);
  }

  getTable(table: TableRef): Promise<Table | undefined> {
    const write = (writer: MessageWriter) => writeTableRef(writer, table);
    return this.#find(requestOf('get table', NFT_MSG.GETTABLE, table.family, write), readTable);
  }

  async listChains(table: TableRef): Promise<Chain[]> {
    const chains = await this.listAllChains(table.family);
    return chains.filter((chain) => chain.table.name === table.name);
  }

  /** The chains of all tables of a family. */
  listAllChains(family: NftFamily): Promise<Chain[]> {
    return this.#list(requestOf('list chains', NFT_MSG.GETCHAIN, family), readChain);
  }

  listRules(table: TableRef, chain?: string): Promise<Rule[]> {
    return this.#list(rulesRequest(table, chain), readRule);
  }

  /** Rules of one chain in order, with their handles. Empty when there is no such chain. */
  listChainRules({ table, name }: ChainRef): Promise<ListedRule[]> {
    return this.#list(rulesRequest(table, name), readListedRule);
  }

  listRuleTargets(table: TableRef): Promise<RuleTarget[]> {
    return this.#list(rulesRequest(table), readRuleTarget);
  }

  listSets(table: TableRef): Promise<SetInfo[]> {
    const write = (writer: MessageWriter) => writer.string(NFTA_SET.TABLE, table.name);
    return this.#list(requestOf('list sets', NFT_MSG.GETSET, table.family, write), readSet);
  }

  listElements(
    set: SetRef,
    onElements: (elements: readonly Element[], restarted: boolean) => void,
    { isApproximate = false }: ListElementsOptions = {},
  ): Promise<void> {
    const write = (writer: MessageWriter) => writeElementListRef(writer, set);
    const request = requestOf('list elements', NFT_MSG.GETSETELEM, set.table.family, write);
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
      // The kernel continues a dump by position. Some time after many elements were added it enlarges the set's hash
      // table. During a dump some elements then come twice and as many are left out, and no flag reports it.
      isConsistent: () => isApproximate || seen.size === count,
    };
    return translated(this.#socket.dump(request, handler));
  }

  getElement(set: SetRef, key: Uint8Array): Promise<Element | undefined> {
    const request = requestOf('get element', NFT_MSG.GETSETELEM, set.table.family, (writer) => {
      writeElementListRef(writer, set);
      const list = writer.beginNested(NFTA_SET_ELEM_LIST.ELEMENTS);
      writeElement(writer, { key });
      writer.endNested(list);
    });
    return this.#find(request, (message) => readElements(message)[0]);
  }

  /** The element for all keys that no other element has; its key is empty. Undefined when there is none. */
  getCatchAll(set: SetRef): Promise<Element | undefined> {
    const request = requestOf('get element', NFT_MSG.GETSETELEM, set.table.family, (writer) => {
      writeElementListRef(writer, set);
      const list = writer.beginNested(NFTA_SET_ELEM_LIST.ELEMENTS);
      writeCatchAllRef(writer);
      writer.endNested(list);
    });
    return this.#find(request, readCatchAll);
  }

  listCounters(table: TableRef): Promise<Counter[]> {
    const request = requestOf('list counters', NFT_MSG.GETOBJ, table.family, (writer) => {
      writer.string(NFTA_OBJ.TABLE, table.name);
      writer.u32Be(NFTA_OBJ.TYPE, NFT_OBJECT_COUNTER);
    });
    return this.#list(request, readCounterObject);
  }

  listFlowtables(table: TableRef): Promise<Flowtable[]> {
    const write = (writer: MessageWriter) => writer.string(NFTA_FLOWTABLE.TABLE, table.name);
    const request = requestOf('list flowtables', NFT_MSG.GETFLOWTABLE, table.family, write);
    return this.#list(request, readFlowtable);
  }

  #find<T>(
    request: NetlinkRequest,
    read: (message: NetlinkMessage) => T | undefined,
  ): Promise<T | undefined> {
    return translated(this.#socket.find(request, 'ENOENT', read));
  }

  /** The list is empty when the table or chain does not exist. */
  async #list<T>(request: NetlinkRequest, read: (message: NetlinkMessage) => T | undefined): Promise<T[]> {
    try {
      return await translated(this.#socket.list(request, read));
    } catch (error) {
      if (isNotFound(error)) return [];
      throw error;
    }
  }
}

function rulesRequest(table: TableRef, chain?: string): NetlinkRequest {
  return requestOf('list rules', NFT_MSG.GETRULE, table.family, (writer) => {
    writer.string(NFTA_RULE.TABLE, table.name);
    if (chain !== undefined) writer.string(NFTA_RULE.CHAIN, chain);
  });
}

export async function getGeneration(socket: NetlinkSocket): Promise<Generation> {
  let generation: Generation = { id: 0, pid: 0, processName: '' };
  await translated(
    socket.request(requestOf('get generation', NFT_MSG.GETGEN), (message) => {
      generation = readGeneration(message);
    }),
  );
  return generation;
}

/** A text that differs between any two elements of a set. */
function identity({ key, keyEnd, intervalEnd }: Element): string {
  const text = Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1');
  if (!keyEnd && !intervalEnd) return text;
  return `${text} ${intervalEnd ?? false} ${keyEnd ? Buffer.from(keyEnd).toString('latin1') : ''}`;
}

function requestOf(
  name: string,
  kind: NftMessageKind,
  family?: NftFamily,
  write?: (writer: MessageWriter) => void,
): NetlinkRequest {
  return {
    name,
    type: messageType(kind),
    write(writer) {
      writer.nfgenmsg(family === undefined ? 0 : familyNumbers[family]);
      write?.(writer);
    },
  };
}

/** Turns a NetlinkError into an NftError. */
async function translated<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof NetlinkError)) throw error;
    throw new NftError(error.action, [{ errno: error.code, text: error.text }], { cause: error });
  }
}
