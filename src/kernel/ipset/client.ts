import { inGroups } from '../../lib/groups.ts';
import { asError } from '../../lib/thrown.ts';
import type { Libc } from '../../native/libc.ts';
import {
  NETLINK_NETFILTER,
  NLM_F_ACK,
  NLM_F_CREATE,
  NLM_F_EXCL,
  NLM_F_REQUEST,
  NLMSG_ERROR,
} from '../netlink/constants.ts';
import { NetlinkError, readAcknowledgement } from '../netlink/error.ts';
import type { NetlinkMessage } from '../netlink/reader.ts';
import { type NetlinkRequest, NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import { MessageWriter } from '../netlink/writer.ts';
import * as codec from './codec.ts';
import { IPSET_MSG, maxSetNameLength } from './constants.ts';
import { parseEntry, type SetEntry } from './entry.ts';
import { IpsetError, isIpsetError } from './errors.ts';
import type { ListedSet, SetDefinition, SetType } from './objects.ts';

/** A set by name, with the type that defines the form of its entries. */
export type SetRef = Pick<SetDefinition, 'name' | 'type'>;

/** An entry that was not added or deleted. */
export interface EntryFailure {
  readonly entry: string;
  readonly error: Error;
}

/** The IP sets of this network namespace. Rejects with IpsetError when the kernel refuses. */
export interface IpsetClient {
  /** Version of the kernel's ipset protocol: 6 or 7. */
  protocol(): Promise<number>;
  /** Creates a set unless it exists. Rejects with EEXIST when a set with this name has another type or size. */
  create(set: SetDefinition): Promise<void>;
  /** Undefined when there is no such set. */
  list(name: string): Promise<ListedSet | undefined>;
  /** Adds entries; existing ones stay. A refused entry does not stop the others. */
  add(set: SetRef, entries: readonly string[]): Promise<EntryFailure[]>;
  /** Deletes entries; missing ones are ignored. A refused entry does not stop the others. */
  delete(set: SetRef, entries: readonly string[]): Promise<EntryFailure[]>;
  /** Removes all entries. */
  flush(name: string): Promise<void>;
  /** Removes a set; returns whether it existed. Rejects with IPSET_ERR_BUSY when rules refer to it. */
  destroy(name: string): Promise<boolean>;
  close(): void;
}

/** Entries per message: an entry takes up to 84 bytes, and all must fit into 64 KiB. */
const entriesAtOnce = 512;

/**
 * The oldest revision of each type that has what we use. The program `ipset` refuses to list sets in a revision that it
 * does not know, and kernels have newer revisions than the `ipset` of many nodes.
 */
const preferredRevisions: Readonly<Record<SetType, number>> = {
  'hash:ip': 0,
  'hash:ip,port': 1,
  'hash:ip,port,ip': 1,
  'hash:ip,port,net': 1,
  'bitmap:port': 0,
};

export function openIpsetClient(libc: Libc, options: SocketOptions): IpsetClient {
  return new NetlinkIpsetClient(openTransport(libc, NETLINK_NETFILTER), options);
}

/** IP sets over netlink: one message takes hundreds of entries, and the kernel reports which entry it refused. */
export class NetlinkIpsetClient implements IpsetClient {
  readonly #socket: NetlinkSocket;
  readonly #revisions = new Map<string, Promise<number>>();

  constructor(transport: NetlinkTransport, options: SocketOptions) {
    this.#socket = new NetlinkSocket(transport, options);
  }

  async protocol(): Promise<number> {
    const request = {
      type: IPSET_MSG.PROTOCOL,
      name: 'asking for the ipset protocol',
      write: codec.writeHeader,
    };
    let version: number | undefined;
    await this.#request(request, undefined, (message) => {
      version = codec.readProtocol(message) ?? version;
    });
    return version ?? 0;
  }

  async create(set: SetDefinition): Promise<void> {
    const name = `creating ipset ${set.name}`;
    if (set.name.length > maxSetNameLength) throw new IpsetError(name, 'ENAMETOOLONG', 'name too long');
    const revision = await this.#revisionOf(set);
    const write = (writer: MessageWriter) => codec.writeCreate(writer, set, revision);
    try {
      await this.#request({ type: IPSET_MSG.CREATE, flags: NLM_F_CREATE, name, write }, set.type);
    } catch (error) {
      if (!isIpsetError(error, 'EEXIST')) throw error;
      throw new IpsetError(name, 'EEXIST', 'a set with this name has another type, family or size');
    }
  }

  async list(name: string): Promise<ListedSet | undefined> {
    let parts: codec.ListPart[] = [];
    const request = this.#named(IPSET_MSG.LIST, `listing ipset ${name}`, name);
    try {
      await this.#socket.dump(request, {
        message: (message) => parts.push(codec.readListPart(message)),
        restart: () => {
          parts = [];
        },
      });
    } catch (error) {
      const refusal = asIpsetError(error);
      if (isIpsetError(refusal, 'ENOENT')) return undefined;
      throw refusal;
    }
    const header = parts.find((part) => part.header)?.header;
    return header && { ...header, entries: parts.flatMap(({ entries }) => entries) };
  }

  add(set: SetRef, entries: readonly string[]): Promise<EntryFailure[]> {
    return this.#alter(IPSET_MSG.ADD, set, entries);
  }

  delete(set: SetRef, entries: readonly string[]): Promise<EntryFailure[]> {
    return this.#alter(IPSET_MSG.DEL, set, entries);
  }

  flush(name: string): Promise<void> {
    return this.#request(this.#named(IPSET_MSG.FLUSH, `flushing ipset ${name}`, name));
  }

  async destroy(name: string): Promise<boolean> {
    try {
      const request = this.#named(IPSET_MSG.DESTROY, `destroying ipset ${name}`, name);
      // Without this flag, newer kernels report success when there is no such set.
      await this.#request({ ...request, flags: NLM_F_EXCL });
      return true;
    } catch (error) {
      if (isIpsetError(error, 'ENOENT')) return false;
      throw error;
    }
  }

  close(): void {
    this.#socket.close();
  }

  /** The revision for new sets of this type. The request also makes the kernel load the module of the type. */
  #revisionOf(set: SetDefinition): Promise<number> {
    const kind = `${set.type} ${'family' in set ? set.family : ''}`;
    const known = this.#revisions.get(kind);
    if (known) return known;
    const asked = this.#askRevision(set);
    this.#revisions.set(kind, asked);
    asked.catch(() => this.#revisions.delete(kind));
    return asked;
  }

  async #askRevision(set: SetDefinition): Promise<number> {
    const write = (writer: MessageWriter) => codec.writeTypeQuery(writer, set);
    const request = { type: IPSET_MSG.TYPE, name: `looking for ipset type ${set.type}`, write };
    let revision = 0;
    await this.#request(request, set.type, (message) => {
      const { min, max } = codec.readRevisions(message);
      revision = Math.min(max, Math.max(min, preferredRevisions[set.type]));
    });
    return revision;
  }

  async #alter(type: number, set: SetRef, entries: readonly string[]): Promise<EntryFailure[]> {
    const failures: EntryFailure[] = [];
    for (const some of inGroups(entries, entriesAtOnce)) {
      await this.#alterSome(type, set, parseAll(set.type, some, failures), failures);
    }
    return failures;
  }

  /** The kernel stops at a refused entry. Entries before it are done; those after it are sent again. */
  async #alterSome(
    type: number,
    set: SetRef,
    entries: readonly ParsedEntry[],
    failures: EntryFailure[],
  ): Promise<void> {
    let rest = entries;
    while (rest.length > 0) {
      const refusal = await this.#exchange(type, set, rest);
      if (!refusal) return;
      const [refused, ...after] = rest.slice(Math.max(0, refusal.line - 1));
      if (refusal.line === 0 || !refused) throw refusalOf(type, set, 'entries', refusal.errno);
      const error = refusalOf(type, set, refused.text, refusal.errno);
      failures.push({ entry: refused.text, error });
      rest = after;
      if (error.errno !== 'IPSET_ERR_HASH_FULL') continue;
      for (const { text } of rest)
        failures.push({ entry: text, error: refusalOf(type, set, text, refusal.errno) });
      return;
    }
  }

  /** Sends one message of entries; returns undefined when the kernel accepted all. */
  async #exchange(
    type: number,
    set: SetRef,
    entries: readonly ParsedEntry[],
  ): Promise<{ line: number; errno: number } | undefined> {
    const writer = new MessageWriter(entries.length * 64 + 256);
    writer.beginMessage(type, NLM_F_REQUEST | NLM_F_ACK, 1);
    codec.writeEntries(
      writer,
      set.name,
      entries.map(({ entry }) => entry),
    );
    writer.endMessage();
    let answer: { line: number; errno: number } | undefined;
    const { lost } = await this.#socket.exchange(writer.bytes(), (message) => {
      if (message.type !== NLMSG_ERROR) return;
      answer = { line: codec.refusedEntry(message) ?? 0, errno: readAcknowledgement(message).errno };
    });
    if (!answer) {
      const words = lost ? 'the answer was lost' : 'no answer came';
      throw new IpsetError(`changing ipset ${set.name}`, lost ? 'ENOBUFS' : 'EIO', words);
    }
    return answer.errno === 0 ? undefined : answer;
  }

  #named(type: number, name: string, set: string): NetlinkRequest {
    return { type, name, write: (writer) => codec.writeSetName(writer, set) };
  }

  async #request(
    request: NetlinkRequest,
    type?: SetType,
    onReply?: (message: NetlinkMessage) => void,
  ): Promise<void> {
    try {
      await this.#socket.request(request, onReply);
    } catch (error) {
      throw asIpsetError(error, type);
    }
  }
}

interface ParsedEntry {
  readonly text: string;
  readonly entry: SetEntry;
}

function parseAll(type: SetType, texts: readonly string[], failures: EntryFailure[]): ParsedEntry[] {
  return texts.flatMap((text) => {
    try {
      return [{ text, entry: parseEntry(text, type) }];
    } catch (error) {
      failures.push({ entry: text, error: asError(error) });
      return [];
    }
  });
}

function refusalOf(type: number, set: SetRef, what: string, errno: number): IpsetError {
  const action = type === IPSET_MSG.ADD ? `adding ${what} to` : `deleting ${what} from`;
  return IpsetError.of(`${action} ipset ${set.name}`, errno, set.type);
}

/** Names ipset's private error numbers. */
function asIpsetError(error: unknown, type?: SetType): unknown {
  return error instanceof NetlinkError ? IpsetError.of(error.action, error.errno, type) : error;
}
