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
import { NoEndpointError } from './balancer.ts';
import { begin, type EndpointTraffic, end } from './counters.ts';
import { type RelayContext, Stream, streamEvents } from './direction.ts';
import type { ServiceHandle } from './service.ts';
import { decodeAddress, domainOfBytes } from './socket-address.ts';
import { closeStream, TCPRelay, watchStream } from './tcp-relay.ts';

const keepAliveSeconds = 15;

export interface SessionContext extends RelayContext {
  readonly clock: Clock;
  /** Milliseconds that each attempt to reach an endpoint may take; there are as many attempts. */
  readonly dialTimeouts: readonly number[];
  /** Reports what an administrator should know. Repetitions are held back. */
  readonly report: (problem: string, detail: string) => void;
}

/** Small packets at once, and a peer that vanished is noticed. */
export function tuneConnection(sockets: Sockets, fd: number): void {
  sockets.setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  sockets.setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  sockets.setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepAliveSeconds);
  sockets.setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepAliveSeconds);
}

/** An endpoint that is being dialled. */
interface Attempt {
  readonly stream: Stream;
  readonly endpoint: string;
  /** Looked up once: after the service was removed, a look would begin a new count that nobody ends. */
  readonly traffic: EndpointTraffic;
  readonly timer: Timer;
}

/**
 * One accepted connection, from the search for an endpoint to its end. Endpoints that do not answer in time are given
 * up for the next; with affinity the client is then bound to the one that answered.
 */
export class TCPSession {
  readonly #context: SessionContext;
  readonly #service: ServiceHandle;
  readonly #client: Stream;
  readonly #peer: Uint8Array;
  readonly #onEnd: (session: TCPSession) => void;
  /** Endpoints that did not answer; undefined as long as there are none. */
  #failed: Set<string> | undefined;
  #attempts = 0;
  #attempt: Attempt | undefined;
  #relay: TCPRelay | undefined;
  #traffic: EndpointTraffic | undefined;
  #isOver = false;

  constructor(
    context: SessionContext,
    service: ServiceHandle,
    fd: number,
    peer: Uint8Array,
    onEnd: (session: TCPSession) => void,
  ) {
    this.#context = context;
    this.#service = service;
    this.#client = new Stream(fd);
    this.#peer = peer.slice();
    this.#onEnd = onEnd;
    begin(service.traffic);
  }

  start(): void {
    const watched = watchStream(this.#context.loop, this.#client, () => this.#clientReady());
    if (watched < 0) this.#giveUp(`cannot watch a connection: ${errnoName(-watched)}`);
    else this.#dial();
  }

  /** Ends the connection from this side. */
  close(): void {
    if (this.#relay) this.#relay.end(false);
    else this.#over(false);
  }

  #clientReady(): void {
    if (this.#relay) this.#relay.resume();
    // Closed altogether: nobody waits for an endpoint any more. A half that is closed may still wait for an answer.
    else if (this.#client.isEnding && this.#context.sockets.pendingError(this.#client.fd) !== 0)
      this.#over(true);
  }

  #dial(): void {
    const { dialTimeouts, sockets, loop, clock } = this.#context;
    const timeout = dialTimeouts[this.#attempts];
    if (timeout === undefined) {
      this.#over(false);
      return;
    }
    let endpoint: string;
    try {
      endpoint = this.#service.next(() => decodeAddress(this.#peer).ip, this.#failed);
    } catch (error) {
      if (!(error instanceof NoEndpointError)) throw error;
      this.#service.traffic.unserved++;
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
    const timer = clock.setTimeout(() => this.#dialFailed('timed out'), timeout);
    const traffic = this.#service.endpointTraffic(endpoint);
    this.#attempt = { stream, endpoint, traffic, timer };
    traffic.dialling++;
    const result = sockets.connect(fd, address);
    if (result < 0 && result !== -EINPROGRESS) {
      this.#dialFailed(errnoName(-result));
      return;
    }
    stream.token = loop.watch(fd, streamEvents, { ready: (events) => this.#serverReady(stream, events) });
    if (stream.token < 0) this.#dialFailed(errnoName(-stream.token));
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
    const { traffic } = attempt;
    traffic.dialling--;
    this.#traffic = traffic;
    begin(traffic);
    this.#relay = new TCPRelay(this.#context, this.#client, stream, [this.#service.traffic, traffic], () =>
      this.#finish(),
    );
    this.#relay.resume();
  }

  #dialFailed(reason: string): void {
    const attempt = this.#attempt;
    if (!attempt) return;
    this.#abandon(attempt);
    this.#failed ??= new Set();
    this.#failed.add(attempt.endpoint);
    attempt.traffic.dialFailures++;
    this.#context.report(
      'An endpoint could not be reached',
      `${this.#service.key} ${attempt.endpoint}: ${reason}`,
    );
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
    this.#context.report('A connection was given up', `${this.#service.key}: ${reason}`);
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
