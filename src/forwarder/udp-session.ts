import { EAGAIN, EINTR, EMSGSIZE, ENOBUFS, EPOLLIN, SOCK_DGRAM } from '../native/sockets.ts';
import { errnoName } from '../native/system-error.ts';
import { bindToClient, isOtherHost } from './client-source.ts';
import type { ServiceHandle } from './service.ts';
import { domainOfBytes } from './socket-address.ts';
import type { SessionContext } from './tcp-session.ts';
import { begin, type EndpointTraffic, end } from './traffic.ts';

/** The listener of a session, as the session uses it. */
interface SessionOwner {
  /** The client's sockaddr, where endpoints see it. */
  readonly source?: Uint8Array;
  /** Sends an answer to the client. Returns a negative errno value on failure. */
  reply(data: Uint8Array, length: number): number;
  used(): void;
  /** Called before `ended` when the endpoint cannot be reached or has no listener. */
  failed(): void;
  ended(): void;
}

const datagramsAtOnce = 16;
/**
 * Errors that lose a datagram and leave the session intact. EMSGSIZE may refer to an earlier datagram that a router
 * found too long.
 */
const losses = new Set([-EAGAIN, -EINTR, -ENOBUFS, -EMSGSIZE]);

/** Passes the datagrams of one client port through a socket connected to one endpoint. */
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

  /** Opens the socket. On failure the session ends; returns false if the cause is on this node, so a retry cannot help. */
  start(): boolean {
    const { sockets, loop } = this.#context;
    const address = this.#service.address(this.endpoint);
    this.#fd = sockets.socket(domainOfBytes(address), SOCK_DGRAM);
    if (this.#fd < 0) return this.#giveUp(this.#fd);
    const { source } = this.#owner;
    if (source && isOtherHost(source, address)) {
      const bound = bindToClient(sockets, this.#fd, source);
      if (bound < 0) return this.#giveUp(bound);
    }
    const connected = sockets.connect(this.#fd, address);
    if (connected < 0) {
      this.#fail(connected);
      return true;
    }
    this.#token = loop.watch(this.#fd, EPOLLIN, { ready: () => this.#receive() });
    return this.#token >= 0 || this.#giveUp(this.#token);
  }

  /** Returns false when the endpoint cannot be reached; the session is then over. */
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
      // Includes ECONNREFUSED: the endpoint's host says that no one listens there.
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

  /** Ends the session because of its endpoint. */
  #fail(result: number): void {
    this.#traffic.dialFailures++;
    this.#owner.failed();
    this.#giveUp(result);
  }

  /** Ends the session because of an error. */
  #giveUp(result: number): false {
    const detail = `${this.#service.key} ${this.endpoint}: ${errnoName(-result)}`;
    this.#context.report('UDP session failed', detail);
    this.end();
    return false;
  }
}
