import { setImmediate as nextTurn } from 'node:timers/promises';
import { Backoff } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { inGroups } from '../../lib/groups.ts';
import { sleep } from '../../lib/sleep.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import { isSystemError } from '../../native/system-error.ts';
import {
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
  NLMSG_NOOP,
} from './constants.ts';
import { type Acknowledgement, isNetlinkError, NetlinkError, readAcknowledgement } from './error.ts';
import { forEachMessage, NetlinkFormatError, type NetlinkMessage } from './reader.ts';
import type { Datagram, NetlinkTransport } from './transport.ts';
import { MessageWriter } from './writer.ts';

/** A message to send. The socket adds the sequence number and the protocol's flags. */
export interface NetlinkRequest {
  readonly type: number;
  readonly flags?: number;
  /** What the request is, for error messages: `delete conntrack entry`. */
  readonly name: string;
  /** Writes the family header and the attributes. */
  write(writer: MessageWriter): void;
}

export interface SocketOptions {
  readonly clock: Clock;
  /** For the pauses between attempts at a dump; Math.random when absent. */
  readonly random?: () => number;
  /** Called with every datagram that is sent or received (debug.ts). */
  readonly onDatagram?: (direction: 'send' | 'receive', bytes: Uint8Array) => void;
  /** How long the kernel may leave a request unanswered. */
  readonly replyTimeoutMs?: number;
}

/** Receives the parts of a dump. */
export interface DumpHandler {
  message(message: NetlinkMessage): void;
  /** A change disturbed the dump, so it starts again: forget all messages so far. */
  restart(): void;
  /** Called at the end. Returns false when the messages contradict each other: the dump was disturbed. */
  isConsistent?(): boolean;
  /** Receives on the event loop, because for a short dump a worker thread costs more than it saves. */
  readonly isShort?: boolean;
  /**
   * Receives on the event loop while datagrams are well filled: the kernel then searches little for the next one, and a
   * change of threads for each costs more, most of all on a busy machine.
   */
  readonly isDense?: boolean;
  /** Called after every datagram. The kernel produces no more of the dump until the promise settles. */
  pause?(): Promise<void> | undefined;
}

/** An item whose request the kernel refused. */
export interface Refusal<T> {
  readonly item: T;
  readonly error: NetlinkError;
}

const ETIMEDOUT = 110;
const EINTR = 4;
const dumpAttempts = 10;
/**
 * Pauses between attempts at a dump, together 1.6 to 3.3 s: long enough for another program to finish what it writes. They
 * are random so that a program that writes at intervals does not hit every attempt.
 */
const dumpPauses = { initialMs: 5, maxMs: 500, jitter: 1 };
/** Half of the longest datagram of a dump. */
const wellFilled = 16_384;
/** Other work of the event loop waits no longer for answers that are queued. */
const drainMs = 1;
/** Requests sent at a time: their acknowledgements must fit into the receive buffer. */
const requestsAtOnce = 512;

/**
 * Requests and dumps over one netlink socket. Calls may overlap: the socket serves them one after the other. Failures
 * reject with NetlinkError (the kernel refused) or SystemError (the socket failed).
 */
export class NetlinkSocket {
  readonly #transport: NetlinkTransport;
  readonly #options: SocketOptions;
  #sequence = 0;
  #cancelWait: (() => void) | undefined;
  #last: Promise<unknown> = Promise.resolve();
  readonly #closing = new AbortController();

  constructor(transport: NetlinkTransport, options: SocketOptions) {
    this.#transport = transport;
    this.#options = options;
  }

  get portId(): number {
    return this.#transport.portId;
  }

  /** Sends one request and waits for its acknowledgement. Objects that the kernel returns go to `onReply`. */
  async request(request: NetlinkRequest, onReply?: (message: NetlinkMessage) => void): Promise<void> {
    const [error] = await this.requestAll([request], onReply);
    if (error) throw error;
  }

  /** The object that the kernel answers with; undefined when it refuses with errno name `absent`. */
  async find<T>(
    request: NetlinkRequest,
    absent: string,
    read: (message: NetlinkMessage) => T | undefined,
  ): Promise<T | undefined> {
    let found: T | undefined;
    try {
      await this.request(request, (message) => {
        found = read(message) ?? found;
      });
    } catch (error) {
      if (!isNetlinkError(error, absent)) throw error;
    }
    return found;
  }

  /** The objects of a dump. `read` returns undefined for messages that are not one of them. */
  async list<T>(
    request: NetlinkRequest,
    read: (message: NetlinkMessage) => T | undefined,
    options: Pick<DumpHandler, 'isShort'> = {},
  ): Promise<T[]> {
    const found: T[] = [];
    await this.dump(request, {
      ...options,
      message: (message) => {
        const object = read(message);
        if (object !== undefined) found.push(object);
      },
      restart: () => {
        found.length = 0;
      },
    });
    return found;
  }

  /** Sends one request per item, hundreds in a datagram. Returns the items that the kernel refused. */
  async requestEach<T>(items: readonly T[], requestOf: (item: T) => NetlinkRequest): Promise<Refusal<T>[]> {
    const refusals: Refusal<T>[] = [];
    for (const some of inGroups(items, requestsAtOnce)) {
      const errors = await this.requestAll(some.map(requestOf));
      for (const [i, item] of some.entries()) {
        const error = errors[i];
        if (error) refusals.push({ item, error });
      }
    }
    return refusals;
  }

  /** Sends requests in one datagram. The result has, for each, the error that the kernel refused it with. */
  requestAll(
    requests: readonly NetlinkRequest[],
    onReply?: (message: NetlinkMessage) => void,
  ): Promise<(NetlinkError | undefined)[]> {
    return this.#exclusively(async () => {
      const first = (this.#sequence + 1) >>> 0;
      await this.#send(this.#encode(requests, NLM_F_ACK));
      const results = new Array<NetlinkError | undefined>(requests.length).fill(undefined);
      let missing = requests.length;
      await this.#converse(
        'request',
        () => missing === 0,
        (message) => {
          const index = (message.sequence - first) >>> 0;
          const request = requests[index];
          if (!request) return;
          if (message.type !== NLMSG_ERROR) return onReply?.(message);
          results[index] = errorOf(request, readAcknowledgement(message));
          missing--;
        },
      );
      return results;
    });
  }

  /**
   * Streams a dump. A disturbed dump starts again, after a pause in which other calls are served; after ten disturbed
   * attempts this rejects with EINTR. An error that the handler throws is thrown here, after the rest of the dump has been
   * read off the socket.
   */
  async dump(request: NetlinkRequest, handler: DumpHandler): Promise<void> {
    const { clock, random = Math.random } = this.#options;
    const pauses = new Backoff(dumpPauses, random);
    const begun = clock.monotonic();
    for (let attempt = 1; ; attempt++) {
      if (await this.#exclusively(() => this.#dumpOnce(request, handler))) return;
      if (attempt === dumpAttempts) break;
      await sleep(clock, pauses.next(), this.#closing.signal);
      handler.restart();
    }
    const seconds = ((clock.monotonic() - begun) / 1_000).toFixed(1);
    const text = `changes disturbed the dump ${dumpAttempts} times within ${seconds} s`;
    throw new NetlinkError(request.name, { errno: EINTR, text });
  }

  /**
   * Sends a datagram that the caller framed and passes on every message that the kernel answered while it processed
   * the datagram. Returns whether answers were lost.
   */
  exchange(bytes: Uint8Array, onMessage: (message: NetlinkMessage) => void): Promise<{ lost: boolean }> {
    return this.#exclusively(async () => {
      await this.#drain(() => {});
      await this.#send(bytes);
      return { lost: await this.#drain(onMessage) };
    });
  }

  /** Closes the socket. Calls under way fail. */
  close(): void {
    this.#cancelWait?.();
    this.#closing.abort();
    this.#transport.close();
  }

  /** Makes one attempt at a dump; returns false when it was disturbed. */
  async #dumpOnce(request: NetlinkRequest, handler: DumpHandler): Promise<boolean> {
    await this.#send(this.#encode([request], NLM_F_DUMP));
    const sequence = this.#sequence;
    let consistent = true;
    let done = false;
    let ack: Acknowledgement = { errno: 0, text: '' };
    const intact = await this.#converse(
      dumpKind(handler),
      () => done,
      (message) => {
        if (message.sequence !== sequence) return;
        if (message.flags & NLM_F_DUMP_INTR) consistent = false;
        if (message.type !== NLMSG_DONE && message.type !== NLMSG_ERROR) return handler.message(message);
        done = true;
        ack = readAcknowledgement(message);
      },
      () => handler.pause?.(),
    );
    if (ack.errno === EINTR) return false;
    if (ack.errno !== 0) throw new NetlinkError(request.name, ack);
    return consistent && intact && (handler.isConsistent?.() ?? true);
  }

  /**
   * Receives until `finished`. An error in the handler does not end the conversation, because the next request would
   * receive the rest of it. Returns false when the kernel dropped messages of a dump; the dump still ends. For a request
   * it throws in that case, because the acknowledgement may never arrive.
   */
  async #converse(
    kind: 'request' | DumpKind,
    finished: () => boolean,
    onMessage: (message: NetlinkMessage) => void,
    pause?: () => Promise<void> | undefined,
  ): Promise<boolean> {
    let intact = true;
    let inWorker = kind === 'dump' || kind === 'dense dump';
    const faults: unknown[] = [];
    const guarded = (message: NetlinkMessage) => {
      try {
        onMessage(message);
      } catch (error) {
        faults.push(error);
      }
    };
    while (!finished()) {
      try {
        const datagram = await this.#receive(inWorker);
        if (kind === 'dense dump') inWorker = datagram.bytes.length < wellFilled;
        this.#handle(datagram, guarded);
      } catch (error) {
        if (error instanceof NetlinkFormatError) faults.push(error);
        else if (kind !== 'request' && isSystemError(error, 'ENOBUFS')) intact = false;
        else throw error;
      }
      if (faults.length === 0) await pause?.()?.catch((error: unknown) => faults.push(error));
      if (kind === 'dense dump' && !inWorker) await nextTurn();
    }
    if (faults.length > 0) throw faults[0];
    return intact;
  }

  /** Receives all datagrams that are queued, in slices of time; resolves to true when the kernel dropped some. */
  async #drain(onMessage: (message: NetlinkMessage) => void): Promise<boolean> {
    const timeSlice = new TimeSlice(this.#options.clock, drainMs);
    let lost = false;
    for (;;) {
      if (timeSlice.isSpent) await timeSlice.yield();
      try {
        const datagram = this.#transport.receive();
        if (!datagram) return lost;
        this.#handle(datagram, onMessage);
      } catch (error) {
        if (!isSystemError(error, 'ENOBUFS')) throw error;
        lost = true;
      }
    }
  }

  #handle(datagram: Datagram, onMessage: (message: NetlinkMessage) => void): void {
    this.#options.onDatagram?.('receive', datagram.bytes);
    // Any program with CAP_NET_ADMIN can send to our port; the kernel sends from port 0.
    if (datagram.sender !== 0) return;
    forEachMessage(datagram.bytes, (message) => {
      if (message.port === this.portId && message.type !== NLMSG_NOOP) onMessage(message);
    });
  }

  async #receive(inWorker: boolean): Promise<Datagram> {
    for (;;) {
      const datagram = inWorker ? await this.#transport.receiveInWorker() : this.#transport.receive();
      if (datagram) return datagram;
      await this.#readable();
    }
  }

  #readable(): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (error?: Error) => {
        timer.cancel();
        watch.close();
        this.#cancelWait = undefined;
        if (error) reject(error);
        else resolve();
      };
      const expired = () => settle(new NetlinkError('receive', { errno: ETIMEDOUT, text: 'no answer came' }));
      const timer = this.#options.clock.setTimeout(expired, this.#options.replyTimeoutMs ?? 10_000);
      const watch = this.#transport.watch(() => settle());
      this.#cancelWait = settle;
    });
  }

  async #send(bytes: Uint8Array): Promise<void> {
    this.#options.onDatagram?.('send', bytes);
    await this.#transport.send(bytes);
  }

  #encode(requests: readonly NetlinkRequest[], flags: number): Uint8Array {
    const writer = new MessageWriter(requests.length * 128);
    for (const request of requests) {
      this.#sequence = (this.#sequence + 1) >>> 0;
      writer.beginMessage(request.type, NLM_F_REQUEST | flags | (request.flags ?? 0), this.#sequence);
      request.write(writer);
      writer.endMessage();
    }
    return writer.bytes();
  }

  #exclusively<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task, task);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

type DumpKind = 'dump' | 'short dump' | 'dense dump';

function dumpKind({ isShort, isDense }: DumpHandler): DumpKind {
  if (isShort) return 'short dump';
  return isDense ? 'dense dump' : 'dump';
}

function errorOf(request: NetlinkRequest, ack: Acknowledgement): NetlinkError | undefined {
  return ack.errno === 0 ? undefined : new NetlinkError(request.name, ack);
}
