import type { Libc } from '../../native/libc.ts';
import { errnoName } from '../../native/system-error.ts';
import { NETLINK_NETFILTER, NLMSG_ERROR } from '../netlink/constants.ts';
import { type Acknowledgement, readAcknowledgement } from '../netlink/error.ts';
import { ignorePort } from '../netlink/filter.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import { NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkSubscription, subscribe } from '../netlink/subscription.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import type { NftBatch } from './batch.ts';
import type { CommitResult, Generation, ListElementsOptions, NftClient, Subscription } from './client.ts';
import { NFNLGRP_NFTABLES } from './constants.ts';
import { NftError, type NftFailure } from './errors.ts';
import { readEvent } from './event-decoder.ts';
import type { NftEvent, NftEventListener } from './events.ts';
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
import { following, OwnCommits } from './own-commits.ts';
import * as queries from './queries.ts';

/** Room for the notifications of a large foreign transaction, and for a refusal of every operation of our own. */
const receiveBuffer = 16 << 20;
/** Batches above this size, which are some thousand elements, are committed without notifying ourselves. */
const quietCommitBytes = 65536;

/** Opens a client on the kernel of this network namespace. */
export function openNftClient(libc: Libc, options: SocketOptions): NftClient {
  return new NetlinkNftClient(() => openTransport(libc, NETLINK_NETFILTER, { receiveBuffer }), options);
}

/**
 * nf_tables over netlink: one socket commits, one reads, so that neither waits for the other, and each subscription
 * has its own. `open` is called for every one of them.
 */
export class NetlinkNftClient implements NftClient {
  readonly #open: () => NetlinkTransport;
  readonly #commits: NetlinkSocket;
  readonly #queries: NetlinkSocket;
  readonly #subscriptions = new Map<NetlinkSubscription, NftEventListener>();
  readonly #ownCommits = new OwnCommits();
  #lastCommit: Promise<unknown> = Promise.resolve();

  constructor(open: () => NetlinkTransport, options: SocketOptions) {
    this.#open = open;
    this.#commits = new NetlinkSocket(open(), options);
    this.#queries = new NetlinkSocket(open(), options);
  }

  get portId(): number {
    return this.#commits.portId;
  }

  commit(batch: NftBatch): Promise<CommitResult> {
    const commit = () => this.#commit(batch);
    const result = this.#lastCommit.then(commit, commit);
    this.#lastCommit = result.catch(() => undefined);
    return result;
  }

  async check(batch: NftBatch): Promise<void> {
    if (batch.operations.length > 0) await this.#transact('check', batch, batch.encode(false));
  }

  generation(): Promise<Generation> {
    return queries.getGeneration(this.#queries);
  }

  listTables(family?: NftFamily): Promise<Table[]> {
    return queries.listTables(this.#queries, family);
  }

  getTable(table: TableRef): Promise<Table | undefined> {
    return queries.getTable(this.#queries, table);
  }

  listChains(table: TableRef): Promise<Chain[]> {
    return queries.listChains(this.#queries, table);
  }

  listRules(table: TableRef, chain?: string): Promise<Rule[]> {
    return queries.listRules(this.#queries, table, chain);
  }

  listSets(table: TableRef): Promise<SetInfo[]> {
    return queries.listSets(this.#queries, table);
  }

  listElements(
    set: SetRef,
    onElements: (elements: readonly Element[], restarted: boolean) => void,
    options: ListElementsOptions = {},
  ): Promise<void> {
    return queries.listElements(this.#queries, set, onElements, options);
  }

  getElement(set: SetRef, key: Uint8Array): Promise<Element | undefined> {
    return queries.getElement(this.#queries, set, key);
  }

  listCounters(table: TableRef, options: { readonly reset?: boolean } = {}): Promise<Counter[]> {
    return queries.listCounters(this.#queries, table, options.reset ?? false);
  }

  subscribe(listener: NftEventListener): Subscription {
    const transport = this.#open();
    transport.attachFilter(ignorePort(this.portId));
    const subscription = subscribe(transport, [NFNLGRP_NFTABLES], {
      message: (message) => deliver(message, listener),
      overrun: () => listener.overrun(),
      failed: (error) => {
        this.#subscriptions.delete(subscription);
        listener.failed(error);
      },
    });
    this.#subscriptions.set(subscription, listener);
    return {
      close: () => {
        subscription.close();
        this.#subscriptions.delete(subscription);
      },
    };
  }

  close(): void {
    for (const subscription of this.#subscriptions.keys()) subscription.close();
    this.#subscriptions.clear();
    this.#commits.close();
    this.#queries.close();
  }

  async #commit(batch: NftBatch): Promise<CommitResult> {
    const { operations, expectedGeneration: expected } = batch;
    if (operations.length === 0) return { generation: undefined, bytes: 0 };
    if (expected !== 0) batch.expectGeneration(this.#ownCommits.advance(expected, operations));
    const bytes = batch.encode(true);
    const before = (await queries.getGeneration(this.#commits)).id;
    const transact = () => this.#transact('commit', batch, bytes);
    if (bytes.length > quietCommitBytes && this.#subscriptions.size > 0)
      await this.#unheard(before, transact);
    else await transact();
    const { id } = await queries.getGeneration(this.#commits);
    this.#ownCommits.note(before, id, operations);
    return { generation: id, bytes: bytes.length };
  }

  /**
   * Commits while our subscriptions look away, because telling anyone of a hundred thousand elements takes the kernel
   * ten times as long as adding them. Whether something else happened meanwhile is told by the generation number,
   * which every commit raises by one.
   */
  async #unheard(before: number, transact: () => Promise<void>): Promise<void> {
    const paused = [...this.#subscriptions];
    let expected = before;
    for (const [subscription] of paused) subscription.pause();
    try {
      await transact();
      expected = following(before);
    } finally {
      for (const [subscription] of paused) subscription.resume();
      const after = (await queries.getGeneration(this.#commits)).id;
      if (after !== expected) for (const [, listener] of paused) listener.overrun();
    }
  }

  /** The kernel reports every operation it refuses; only if there is none does the last one's receipt count. */
  async #transact(action: string, batch: NftBatch, bytes: Uint8Array): Promise<void> {
    const failures: NftFailure[] = [];
    let confirmed = false;
    const { lost } = await this.#commits.exchange(bytes, (message) => {
      if (message.type !== NLMSG_ERROR) return;
      const ack = readAcknowledgement(message);
      if (ack.errno !== 0) failures.push(failureOf(batch, message.sequence - 1, ack));
      else if (message.sequence === batch.operations.length) confirmed = true;
    });
    if (failures.length === 0 && lost) failures.push({ errno: 'ENOBUFS', text: 'the answer was lost' });
    if (failures.length === 0 && !confirmed) failures.push({ errno: 'EIO', text: 'no confirmation came' });
    if (failures.length > 0) throw new NftError(action, failures);
  }
}

function failureOf(batch: NftBatch, index: number, ack: Acknowledgement): NftFailure {
  const operation = batch.operations[index];
  const element = ack.offset === undefined ? undefined : batch.elementAt(index, ack.offset);
  return {
    errno: errnoName(ack.errno),
    text: ack.text,
    ...(operation && { operation }),
    ...(element && { element }),
  };
}

/** A notification that cannot be read is as good as lost. */
function deliver(message: NetlinkMessage, listener: NftEventListener): void {
  const event = tryReadEvent(message);
  if (event === 'unreadable') listener.overrun();
  else if (event) listener.event(event);
}

function tryReadEvent(message: NetlinkMessage): NftEvent | 'unreadable' | undefined {
  try {
    return readEvent(message);
  } catch (error) {
    if (error instanceof NetlinkFormatError) return 'unreadable';
    throw error;
  }
}
