import type { Clock } from '../../lib/clock.ts';
import type { Libc } from '../../native/libc.ts';
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
import { type Acknowledgement, NetlinkError, readAcknowledgement } from './error.ts';
import { forEachMessage, NetlinkFormatError, type NetlinkMessage } from './reader.ts';
import { type Datagram, type NetlinkTransport, openTransport, type TransportOptions } from './transport.ts';
import { MessageWriter } from './writer.ts';

/** A message to send; the socket adds sequence number and protocol flags. */
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
  /** Sees every datagram that is sent or received; see debug.ts. */
  readonly onDatagram?: (direction: 'send' | 'receive', bytes: Uint8Array) => void;
  /** How long the kernel may leave a request unanswered. */
  readonly replyTimeoutMs?: number;
}

/** Receives the parts of a dump. */
export interface DumpHandler {
  message(message: NetlinkMessage): void;
  /** The dump was disturbed and begins again: forget what came so far. */
  restart(): void;
  /** Asked at the end: false when what came contradicts itself, so that the dump must have been disturbed. */
  isConsistent?(): boolean;
  /** The dump is so short that receiving it elsewhere than on the event loop would only take longer. */
  readonly isShort?: boolean;
  /** Asked after every datagram: the kernel produces no more of the dump until the promise is settled. */
  pause?(): Promise<void> | undefined;
}

const ETIMEDOUT = 110;
const EINTR = 4;
const dumpAttempts = 5;

/**
 * Requests and dumps over one netlink socket. Calls may overlap; they are served one after the other. Failures
 * reject with NetlinkError (the kernel refused) or SystemError (the socket failed).
 */
export class NetlinkSocket {
  readonly #transport: NetlinkTransport;
  readonly #options: SocketOptions;
  #sequence = 0;
  #cancelWait: (() => void) | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(transport: NetlinkTransport, options: SocketOptions) {
    this.#transport = transport;
    this.#options = options;
  }

  static open(libc: Libc, protocol: number, options: SocketOptions & TransportOptions): NetlinkSocket {
    return new NetlinkSocket(openTransport(libc, protocol, options), options);
  }

  get portId(): number {
    return this.#transport.portId;
  }

  /** Sends one request and waits for its acknowledgement; objects that the kernel returns go to `onReply`. */
  async request(request: NetlinkRequest, onReply?: (message: NetlinkMessage) => void): Promise<void> {
    const [error] = await this.requestAll([request], onReply);
    if (error) throw error;
  }

  /** Sends requests in one go; the result has, for each, the error it was refused with. */
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
   * Streams a dump. One that a change disturbed is begun again, up to five times; then it rejects with EINTR. What
   * the handler throws is thrown here, after the rest of the dump has been read off the socket.
   */
  dump(request: NetlinkRequest, handler: DumpHandler): Promise<void> {
    return this.#exclusively(async () => {
      for (let attempt = 1; attempt <= dumpAttempts; attempt++) {
        if (attempt > 1) handler.restart();
        if (await this.#dumpOnce(request, handler)) return;
      }
      throw new NetlinkError(request.name, { errno: EINTR, text: 'the dump was interrupted every time' });
    });
  }

  /**
   * Sends a datagram that the caller framed, and hands over everything the kernel answered by the time it had worked
   * that off. Returns whether answers were lost.
   */
  exchange(bytes: Uint8Array, onMessage: (message: NetlinkMessage) => void): Promise<{ lost: boolean }> {
    return this.#exclusively(async () => {
      this.#drain(() => {});
      await this.#send(bytes);
      return { lost: this.#drain(onMessage) };
    });
  }

  /** Closes the socket; calls under way fail. */
  close(): void {
    this.#cancelWait?.();
    this.#transport.close();
  }

  /** One pass over a dump; false when it was disturbed. */
  async #dumpOnce(request: NetlinkRequest, handler: DumpHandler): Promise<boolean> {
    await this.#send(this.#encode([request], NLM_F_DUMP));
    const sequence = this.#sequence;
    let consistent = true;
    let done = false;
    let ack: Acknowledgement = { errno: 0, text: '' };
    const intact = await this.#converse(
      handler.isShort ? 'short dump' : 'dump',
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
   * Receives until `finished`. A fault in the handler does not end the conversation, because its remains would meet
   * the next request. Returns false when the kernel dropped messages: a dump still comes to its end then, while the
   * acknowledgement of a request may never come.
   */
  async #converse(
    kind: 'request' | 'dump' | 'short dump',
    finished: () => boolean,
    onMessage: (message: NetlinkMessage) => void,
    pause?: () => Promise<void> | undefined,
  ): Promise<boolean> {
    let intact = true;
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
        this.#handle(await this.#receive(kind === 'dump'), guarded);
      } catch (error) {
        if (error instanceof NetlinkFormatError) faults.push(error);
        else if (kind !== 'request' && isSystemError(error, 'ENOBUFS')) intact = false;
        else throw error;
      }
      if (faults.length === 0) await pause?.()?.catch((error: unknown) => faults.push(error));
    }
    if (faults.length > 0) throw faults[0];
    return intact;
  }

  /** Takes all datagrams that are there; true when the kernel had dropped some. */
  #drain(onMessage: (message: NetlinkMessage) => void): boolean {
    let lost = false;
    for (;;) {
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
    // Anyone with CAP_NET_ADMIN can write to our port; only the kernel answers for itself.
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

function errorOf(request: NetlinkRequest, ack: Acknowledgement): NetlinkError | undefined {
  return ack.errno === 0 ? undefined : new NetlinkError(request.name, ack);
}
