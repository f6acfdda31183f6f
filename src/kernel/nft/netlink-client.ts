import type { Libc } from '../../native/libc.ts';
import { errnoName } from '../../native/system-error.ts';
import { NETLINK_NETFILTER, NLMSG_ERROR } from '../netlink/constants.ts';
import { type Acknowledgement, readAcknowledgement } from '../netlink/error.ts';
import { ignorePorts } from '../netlink/filter.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import { NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkSubscription, subscribe } from '../netlink/subscription.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import type { NftBatch } from './batch.ts';
import type { CommitResult, NftClient, Subscription } from './client.ts';
import { NFNLGRP_NFTABLES } from './constants.ts';
import { NftError, type NftFailure } from './errors.ts';
import { readEvent } from './event-decoder.ts';
import type { NftEvent, NftEventListener } from './events.ts';
import { following, OwnCommits } from './own-commits.ts';
import { getGeneration, NftQueries } from './queries.ts';

/** Room for the notifications of another program's large transaction, or for a refusal of each of our operations. */
const receiveBuffer = 16 << 20;
/** While a batch above this size (some thousand elements) is committed, our subscriptions are paused. */
const quietCommitBytes = 65536;

/** Opens a client on the kernel of this network namespace. */
export function openNftClient(libc: Libc, options: SocketOptions): NftClient {
  return new NetlinkNftClient(() => openTransport(libc, NETLINK_NETFILTER, { receiveBuffer }), options);
}

/**
 * nf_tables over netlink. Commits, queries and every subscription have a socket each, made by `open`, so that none waits
 * for another.
 */
export class NetlinkNftClient extends NftQueries implements NftClient {
  readonly #open: () => NetlinkTransport;
  readonly #commits: NetlinkSocket;
  readonly #queries: NetlinkSocket;
  readonly #subscriptions = new Map<NetlinkSubscription, NftEventListener>();
  /** Those that are paused for a large commit; undefined while there is none. */
  #paused: Map<NetlinkSubscription, NftEventListener> | undefined;
  readonly #ownCommits = new OwnCommits();
  #lastCommit: Promise<unknown> = Promise.resolve();

  constructor(open: () => NetlinkTransport, options: SocketOptions) {
    const commits = new NetlinkSocket(open(), options);
    const queries = new NetlinkSocket(open(), options);
    super(queries);
    this.#open = open;
    this.#commits = commits;
    this.#queries = queries;
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

  subscribe(listener: NftEventListener): Subscription {
    const transport = this.#open();
    transport.attachFilter(ignorePorts([this.portId]));
    const subscription = subscribe(transport, [NFNLGRP_NFTABLES], {
      message: (message) => deliver(message, listener),
      overrun: () => listener.overrun(),
      failed: (error) => {
        this.#subscriptions.delete(subscription);
        listener.failed(error);
      },
    });
    this.#subscriptions.set(subscription, listener);
    // One listener is enough to have the kernel build notifications. The other family may subscribe during a first commit.
    if (this.#paused) this.#pause(this.#paused, subscription, listener);
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
    const before = (await getGeneration(this.#commits)).id;
    const transact = () => this.#transact('commit', batch, bytes);
    if (bytes.length > quietCommitBytes) await this.#withoutNotifications(before, transact);
    else await transact();
    const { id } = await getGeneration(this.#commits);
    this.#ownCommits.note(before, id, operations);
    return { generation: id, bytes: bytes.length };
  }

  /**
   * Commits while our subscriptions are paused, because notifications of a hundred thousand elements take the kernel ten
   * times as long as adding them. Every commit raises the generation by one: if it rose by more, another program
   * committed in between, and this reports lost events to the listeners.
   */
  async #withoutNotifications(before: number, transact: () => Promise<void>): Promise<void> {
    const paused = new Map<NetlinkSubscription, NftEventListener>();
    this.#paused = paused;
    let expected = before;
    for (const [subscription, listener] of this.#subscriptions) this.#pause(paused, subscription, listener);
    try {
      await transact();
      expected = following(before);
    } finally {
      this.#paused = undefined;
      for (const subscription of paused.keys()) subscription.resume();
      const after = (await getGeneration(this.#commits)).id;
      if (after !== expected) for (const listener of paused.values()) listener.overrun();
    }
  }

  #pause(
    paused: Map<NetlinkSubscription, NftEventListener>,
    subscription: NetlinkSubscription,
    listener: NftEventListener,
  ): void {
    subscription.pause();
    paused.set(subscription, listener);
  }

  /** The kernel reports every operation that it refuses. Without refusals, the last acknowledgement confirms success. */
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

/** Treats a notification that cannot be read as lost. */
function deliver(message: NetlinkMessage, listener: NftEventListener): void {
  let event: NftEvent | undefined;
  try {
    event = readEvent(message);
  } catch (error) {
    if (!(error instanceof NetlinkFormatError)) throw error;
    listener.overrun();
  }
  if (event) listener.event(event);
}
