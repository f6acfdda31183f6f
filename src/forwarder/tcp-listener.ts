import type { Timer } from '../lib/clock.ts';
import {
  EAGAIN,
  ECONNABORTED,
  EINTR,
  EMFILE,
  ENFILE,
  ENOBUFS,
  ENOMEM,
  EPOLLIN,
  SO_REUSEADDR,
  SOCK_STREAM,
  SOL_SOCKET,
} from '../native/sockets.ts';
import { errnoName, SystemError } from '../native/system-error.ts';
import type { Admission } from './admission.ts';
import { keepsSource } from './client-source.ts';
import type { ForwardedConnection } from './connection-log.ts';
import type { KeptSources, Listening } from './forwarder.ts';
import { boundPort, openSocket } from './open-socket.ts';
import type { ServiceHandle } from './service.ts';
import { maxAddressBytes, trimAddress } from './socket-address.ts';
import { type SessionContext, TCPSession, tuneConnection } from './tcp-session.ts';

const backlog = 4096;
/** Connections accepted before other handlers get their turn. */
const acceptsAtOnce = 64;
/** Pause after an error that only time can cure. */
const pauseMs = 100;
/** To the client and to the endpoint. */
const filesOfConnection = 2;
const outOfResources = new Set([-EMFILE, -ENFILE, -ENOBUFS, -ENOMEM]);

/** Accepts connections at one address for one service. */
export class TCPListener {
  readonly port: number;
  readonly service: ServiceHandle;
  readonly #context: SessionContext;
  readonly #admission: Admission;
  readonly #kept: KeptSources | undefined;
  readonly #fd: number;
  readonly #peer = new Uint8Array(maxAddressBytes);
  readonly #sessions = new Set<TCPSession>();
  #token = -1;
  #pause: Timer | undefined;
  #isClosed = false;

  /** Starts listening; throws SystemError when the address is not available. */
  constructor(
    context: SessionContext,
    service: ServiceHandle,
    admission: Admission,
    { at, kept }: Pick<Listening, 'at' | 'kept'>,
  ) {
    this.#context = context;
    this.service = service;
    this.#admission = admission;
    this.#kept = kept;
    const { sockets } = context;
    this.#fd = openSocket(sockets, SOCK_STREAM, at, (fd) => {
      sockets.setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
      // Accepted connections inherit these.
      tuneConnection(sockets, fd);
    });
    const result = sockets.listen(this.#fd, backlog);
    if (result < 0) {
      sockets.close(this.#fd);
      throw new SystemError('listen', -result);
    }
    this.port = boundPort(sockets, this.#fd);
    this.#watch();
  }

  /** Stops listening. Open connections continue unless `endConnections` is true. */
  close(endConnections: boolean): void {
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#pause?.cancel();
      if (this.#token >= 0) this.#context.loop.unwatch(this.#token);
      this.#context.sockets.close(this.#fd);
    }
    if (endConnections) for (const session of [...this.#sessions]) session.close();
  }

  /** The open connections that have an endpoint. */
  connections(): ForwardedConnection[] {
    return [...this.#sessions].flatMap(({ forwarded }) => forwarded ?? []);
  }

  get hasConnections(): boolean {
    return this.#sessions.size > 0;
  }

  #watch(): void {
    this.#token = this.#context.loop.watch(this.#fd, EPOLLIN, { ready: () => this.#accept() });
    if (this.#token < 0) this.#pauseAccepting(`cannot watch a listener: ${errnoName(-this.#token)}`);
  }

  #accept(): void {
    const { sockets } = this.#context;
    for (let i = 0; i < acceptsAtOnce && !this.#isClosed; i++) {
      if (!this.#admission.admits(this.service.traffic.open)) {
        this.#pauseAccepting('the limit on open connections is reached');
        return;
      }
      const fd = sockets.accept(this.#fd, this.#peer);
      if (fd >= 0) this.#begin(fd);
      else if (fd === -EAGAIN) return;
      else if (outOfResources.has(fd)) {
        this.#pauseAccepting(`cannot accept: ${errnoName(-fd)}`);
        return;
      } else if (fd !== -EINTR && fd !== -ECONNABORTED) {
        // A network error of this one connection, which the kernel reports through accept.
        this.#context.report('Failed to accept a connection', `${this.service.key}: ${errnoName(-fd)}`);
        return;
      }
    }
  }

  #begin(fd: number): void {
    const { sockets, report } = this.#context;
    const address = trimAddress(this.#peer);
    // Conntrack has the connection in a zone that another program chose, or no longer.
    const onUnknown = (errno: number) =>
      report('No original address of a connection', `${this.service.key}: ${errnoName(errno)}`);
    const isKept = keepsSource(sockets, this.#kept, address, fd, onUnknown);
    this.#admission.enter(filesOfConnection);
    const client = { fd, address, keepsSource: isKept };
    const session = new TCPSession(this.#context, this.service, client, (ended) => {
      this.#sessions.delete(ended);
      this.#admission.leave(filesOfConnection);
    });
    this.#sessions.add(session);
    session.start();
  }

  /** Leaves new connections in the kernel's queue for a moment. */
  #pauseAccepting(reason: string): void {
    const { loop, clock, report } = this.#context;
    report('New connections must wait', `${this.service.key}: ${reason}`);
    if (this.#token >= 0) loop.unwatch(this.#token, this.#fd);
    this.#token = -1;
    this.#pause = clock.setTimeout(() => this.#watch(), pauseMs);
  }
}
