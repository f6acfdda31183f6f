import type { Clock, Timer } from '../lib/clock.ts';
import {
  EINPROGRESS,
  EMFILE,
  ENFILE,
  EPOLLERR,
  EPOLLHUP,
  EPOLLOUT,
  IPPROTO_TCP,
  SO_KEEPALIVE,
  SOCK_STREAM,
  SOL_SOCKET,
  type Sockets,
  TCP_KEEPIDLE,
  TCP_KEEPINTVL,
  TCP_NODELAY,
} from '../native/sockets.ts';
import { errnoName } from '../native/system-error.ts';
import { bindToClient, isOtherHost } from './client-source.ts';
import { type ConnectionLog, type ForwardedConnection, forwarded } from './connection-log.ts';
import { type RelayContext, Stream, streamEvents } from './direction.ts';
import type { ServiceHandle } from './service.ts';
import { decodeAddress, domainOfBytes, type SocketAddress } from './socket-address.ts';
import { closeStream, TCPRelay } from './tcp-relay.ts';
import { begin, type EndpointTraffic, end } from './traffic.ts';

const keepAliveSeconds = 15;

export interface SessionContext extends RelayContext {
  readonly clock: Clock;
  /** See ForwarderOptions. */
  readonly dialTimeouts: readonly number[];
  /** Reports a problem to the administrator; repetitions are limited. */
  readonly report: (problem: string, detail: string) => void;
  readonly log: ConnectionLog;
}

/** Sends small packets without delay, and detects peers that vanished. */
export function tuneConnection(sockets: Sockets, fd: number): void {
  sockets.setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  sockets.setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  sockets.setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepAliveSeconds);
  sockets.setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepAliveSeconds);
}

/** The client's side of an accepted connection. */
export interface AcceptedClient {
  readonly fd: number;
  /** Its sockaddr. */
  readonly address: Uint8Array;
  /** Endpoints see its address. */
  readonly keepsSource: boolean;
}

/** An endpoint that is being dialled. */
interface Attempt {
  readonly stream: Stream;
  readonly endpoint: string;
  readonly traffic: EndpointTraffic;
  readonly timer: Timer;
}

/**
 * One accepted connection, from the choice of an endpoint to its end. It tries the next endpoint when one does not
 * answer in time; with affinity the client is then bound to the one that answered.
 */
export class TCPSession {
  readonly #context: SessionContext;
  readonly #service: ServiceHandle;
  readonly #client: Stream;
  readonly #peer: Uint8Array;
  readonly #keepsSource: boolean;
  #endpoint: string | undefined;
  readonly #onEnd: (session: TCPSession) => void;
  /** Endpoints that did not answer; undefined while there are none. */
  #failed: Set<string> | undefined;
  #attempts = 0;
  #attempt: Attempt | undefined;
  #relay: TCPRelay | undefined;
  #traffic: EndpointTraffic | undefined;
  #isOver = false;

  constructor(
    context: SessionContext,
    service: ServiceHandle,
    { fd, address, keepsSource }: AcceptedClient,
    onEnd: (session: TCPSession) => void,
  ) {
    this.#context = context;
    this.#service = service;
    this.#client = new Stream(fd);
    this.#peer = address;
    this.#keepsSource = keepsSource;
    this.#onEnd = onEnd;
    begin(service.traffic);
  }

  start(): void {
    const ready = (events: number): void => this.#clientReady(events);
    const token = this.#context.loop.watch(this.#client.fd, streamEvents, { ready });
    this.#client.token = token;
    if (token < 0) this.#giveUp(`cannot watch a connection: ${errnoName(-token)}`);
    else this.#dial();
  }

  /** The connection as far as others may know it; undefined before it has an endpoint. */
  get forwarded(): ForwardedConnection | undefined {
    if (this.#endpoint === undefined) return undefined;
    return forwarded(this.#service.key, this.#peer, this.#endpoint);
  }

  /** Ends the connection from this side. */
  close(): void {
    if (this.#relay) this.#relay.end(false);
    else this.#over(false);
  }

  #clientReady(events: number): void {
    this.#client.note(events);
    if (this.#relay) this.#relay.resume();
    // The client is gone. One that closed only its sending half still waits for an answer.
    else if (this.#client.isEnding && this.#context.sockets.pendingError(this.#client.fd) !== 0)
      this.#over(true);
  }

  #dial(): void {
    const { dialTimeouts, sockets, loop, clock } = this.#context;
    const timeout = dialTimeouts[this.#attempts];
    const endpoint = timeout === undefined ? undefined : this.#chooseEndpoint();
    if (timeout === undefined || endpoint === undefined) {
      this.#over(false);
      return;
    }
    this.#attempts++;
    const address = this.#service.address(endpoint);
    const fd = sockets.socket(domainOfBytes(address), SOCK_STREAM);
    if (fd < 0) {
      this.#noSocket(fd, endpoint);
      return;
    }
    tuneConnection(sockets, fd);
    const stream = new Stream(fd);
    const timer = clock.setTimeout(() => this.#timedOut(stream, address), timeout);
    const traffic = this.#service.endpointTraffic(endpoint);
    this.#attempt = { stream, endpoint, traffic, timer };
    traffic.dialling++;
    const result = this.#connect(fd, address);
    if (result < 0 && result !== -EINPROGRESS) {
      this.#dialFailed(errnoName(-result));
      return;
    }
    stream.token = loop.watch(fd, streamEvents, { ready: (events) => this.#serverReady(stream, events) });
    if (stream.token < 0) this.#dialFailed(errnoName(-stream.token));
  }

  #connect(fd: number, endpoint: Uint8Array): number {
    const { sockets } = this.#context;
    if (this.#keepsSource && isOtherHost(this.#peer, endpoint)) {
      const bound = bindToClient(sockets, fd, this.#peer);
      if (bound < 0) return bound;
    }
    return sockets.connect(fd, endpoint);
  }

  #chooseEndpoint(): string | undefined {
    const client = (): SocketAddress => decodeAddress(this.#peer);
    return this.#service.next(client, this.#failed, this.#failed !== undefined);
  }

  #serverReady(stream: Stream, events: number): void {
    stream.note(events);
    if (this.#relay) {
      this.#relay.resume();
      return;
    }
    if (events & (EPOLLERR | EPOLLHUP)) {
      this.#dialFailed(errnoName(this.#context.sockets.pendingError(stream.fd)));
      return;
    }
    if (events & EPOLLOUT) this.#connected(stream);
  }

  #connected(stream: Stream): void {
    const attempt = this.#attempt;
    if (!attempt) return;
    attempt.timer.cancel();
    this.#attempt = undefined;
    const { traffic, endpoint } = attempt;
    traffic.dialling--;
    this.#traffic = traffic;
    this.#endpoint = endpoint;
    this.#context.log.add(this.#service.key, this.#peer, endpoint);
    begin(traffic);
    this.#relay = new TCPRelay(this.#context, this.#client, stream, [this.#service.traffic, traffic], () =>
      this.#finish(),
    );
    this.#relay.resume();
  }

  /** A busy thread may be late: the endpoint answered in time, but the event of that waits for its turn. */
  #timedOut(stream: Stream, address: Uint8Array): void {
    const isConnected = this.#context.sockets.connect(stream.fd, address) === 0;
    if (isConnected) this.#connected(stream);
    else this.#dialFailed('timed out');
  }

  #dialFailed(reason: string): void {
    const attempt = this.#attempt;
    if (!attempt) return;
    this.#abandon(attempt);
    this.#failed ??= new Set();
    this.#failed.add(attempt.endpoint);
    attempt.traffic.dialFailures++;
    const detail = `${this.#service.key} ${attempt.endpoint}: ${reason}`;
    this.#context.report('Failed to connect to an endpoint', detail);
    this.#dial();
  }

  #abandon({ stream, traffic, timer }: Attempt): void {
    timer.cancel();
    traffic.dialling--;
    this.#attempt = undefined;
    closeStream(this.#context.sockets, this.#context.loop, stream, false);
  }

  #noSocket(result: number, endpoint: string): void {
    const hasRunOut = result === -EMFILE || result === -ENFILE;
    this.#giveUp(hasRunOut ? 'too many open files' : `no socket for ${endpoint}: ${errnoName(-result)}`);
  }

  #giveUp(reason: string): void {
    this.#context.report(
      'Connection closed before it reached an endpoint',
      `${this.#service.key}: ${reason}`,
    );
    this.#over(false);
  }

  /** Ends a connection that never reached an endpoint. */
  #over(reset: boolean): void {
    if (this.#isOver) return;
    if (this.#attempt) this.#abandon(this.#attempt);
    closeStream(this.#context.sockets, this.#context.loop, this.#client, reset);
    this.#finish();
  }

  #finish(): void {
    this.#isOver = true;
    end(this.#service.traffic);
    if (this.#traffic) end(this.#traffic);
    this.#onEnd(this);
  }
}
