import { EAGAIN, EINTR, EMSGSIZE, ENOBUFS, EPOLLIN, SOCK_DGRAM } from '../native/sockets.ts';
import { errnoName } from '../native/system-error.ts';
import { begin, type EndpointTraffic, end } from './counters.ts';
import type { ServiceHandle } from './service.ts';
import { domainOfBytes } from './socket-address.ts';
import type { SessionContext } from './tcp-session.ts';

/** What a session asks of the listener that it belongs to. */
export interface SessionOwner {
  /** Sends an answer to the client; a negative errno value on failure. */
  reply(data: Uint8Array, length: number): number;
  used(): void;
  /** The endpoint cannot be reached, or says that nobody listens there. The end follows. */
  failed(): void;
  ended(): void;
}

const datagramsAtOnce = 16;
/**
 * The datagram is lost, as datagrams may be; nothing is wrong with the session. That it is too long is also told of one
 * sent before, when a router on the way found so.
 */
const losses = new Set([-EAGAIN, -EINTR, -ENOBUFS, -EMSGSIZE]);

/** The datagrams of one client port, by way of a socket of their own connected to one endpoint. */
export class UDPSession {
  readonly endpoint: string;
  usedAt = 0;
  readonly #context: SessionContext;
  readonly #service: ServiceHandle;
  readonly #owner: SessionOwner;
  readonly #traffic: EndpointTraffic;
  #fd = -1;
  #token = -1;
  #isOver = false;

  constructor(context: SessionContext, service: ServiceHandle, endpoint: string, owner: SessionOwner) {
    this.#context = context;
    this.#service = service;
    this.endpoint = endpoint;
    this.#owner = owner;
    this.#traffic = service.endpointTraffic(endpoint);
    begin(service.traffic, this.#traffic);
  }

  /** Makes the socket; the session is over at once when that fails. False when that is for want of means here. */
  start(): boolean {
    const { sockets, loop } = this.#context;
    const address = this.#service.address(this.endpoint);
    this.#fd = sockets.socket(domainOfBytes(address), SOCK_DGRAM);
    if (this.#fd < 0) return this.#giveUp(this.#fd);
    const connected = sockets.connect(this.#fd, address);
    if (connected < 0) {
      this.#fail(connected);
      return true;
    }
    this.#token = loop.watch(this.#fd, EPOLLIN, { ready: () => this.#receive() });
    return this.#token >= 0 || this.#giveUp(this.#token);
  }

  /** False when the endpoint did not get the datagram and never will: the session is over. */
  send(data: Uint8Array, length: number): boolean {
    if (this.#isOver) return false;
    const sent = this.#context.sockets.send(this.#fd, data, length);
    if (sent < 0 && !losses.has(sent)) {
      this.#fail(sent);
      return false;
    }
    this.#service.traffic.bytesIn += length;
    this.#traffic.bytesIn += length;
    this.#owner.used();
    return true;
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { sockets, loop } = this.#context;
    if (this.#token >= 0) loop.unwatch(this.#token);
    if (this.#fd >= 0) sockets.close(this.#fd);
    end(this.#service.traffic, this.#traffic);
    this.#owner.ended();
  }

  #receive(): void {
    const { sockets, scratch } = this.#context;
    for (let i = 0; i < datagramsAtOnce && !this.#isOver; i++) {
      const length = sockets.read(this.#fd, scratch);
      if (length === -EAGAIN || length === -EINTR) return;
      if (length === -EMSGSIZE) continue;
      // Also what the endpoint's host says when nobody listens there.
      if (length < 0) {
        this.#fail(length);
        return;
      }
      const sent = this.#owner.reply(scratch, length);
      if (sent < 0 && !losses.has(sent)) {
        this.#giveUp(sent);
        return;
      }
      this.#service.traffic.bytesOut += length;
      this.#traffic.bytesOut += length;
      this.#owner.used();
    }
  }

  /** Ends with an error that is the endpoint's. */
  #fail(result: number): void {
    this.#traffic.dialFailures++;
    this.#owner.failed();
    this.#giveUp(result);
  }

  /** Ends with an error that another endpoint would not have spared us. */
  #giveUp(result: number): false {
    const detail = `${this.#service.key} ${this.endpoint}: ${errnoName(-result)}`;
    this.#context.report('A UDP session ended with an error', detail);
    this.end();
    return false;
  }
}
