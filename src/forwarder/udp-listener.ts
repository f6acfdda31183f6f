import type { Timer } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import { EAGAIN, EINTR, EPOLLIN, SO_RCVBUF, SOCK_DGRAM, SOL_SOCKET } from '../native/sockets.ts';
import { errnoName, SystemError } from '../native/system-error.ts';
import type { Admission } from './admission.ts';
import { keepsSource } from './client-source.ts';
import { type ForwardedConnection, forwarded } from './connection-log.ts';
import { FailedEndpoints } from './failed-endpoints.ts';
import type { KeptSources, Listening } from './forwarder.ts';
import { boundPort, openSocket } from './open-socket.ts';
import { RecentMap } from './recent-map.ts';
import type { ServiceHandle } from './service.ts';
import { decodeAddress, maxAddressBytes, type SocketAddress, trimAddress } from './socket-address.ts';
import type { SessionContext } from './tcp-session.ts';
import { UDPSession } from './udp-session.ts';

/** Datagrams received before other handlers get their turn. */
const datagramsAtOnce = 64;
/** Room for a burst while this thread is busy; the kernel may grant less. */
const receiveBufferBytes = 4 << 20;
const reopenMs = 100;
/** The socket to the endpoint; all clients share the listener's socket. */
const filesOfSession = 1;

export interface UDPContext extends SessionContext {
  /** Milliseconds without a datagram after which a session ends. */
  readonly idleMs: number;
}

/**
 * Receives datagrams at one address for one service. Each client port has a session with one endpoint. A session ends
 * when it is idle, when its endpoint is removed, or when the limit is reached and it has been idle for longest.
 */
export class UDPListener {
  readonly port: number;
  readonly service: ServiceHandle;
  readonly #context: UDPContext;
  readonly #admission: Admission;
  readonly #at: SocketAddress;
  readonly #sender = new Uint8Array(maxAddressBytes);
  readonly #senderText = Buffer.from(this.#sender.buffer);
  /** By the client's sockaddr; the session that has been idle for longest comes first. */
  readonly #sessions = new RecentMap<string, UDPSession>();
  readonly #failures: FailedEndpoints;
  readonly #kept: KeptSources | undefined;
  #fd: number;
  #token = -1;
  #sweep: Timer | undefined;
  #reopen: Timer | undefined;
  #isClosed = false;

  /** Starts listening; throws SystemError when the address is not available. */
  constructor(
    context: UDPContext,
    service: ServiceHandle,
    admission: Admission,
    { at, kept }: Pick<Listening, 'at' | 'kept'>,
  ) {
    this.#context = context;
    this.service = service;
    this.#admission = admission;
    this.#kept = kept;
    this.#failures = new FailedEndpoints(context.clock);
    this.#fd = this.#open(at);
    this.port = boundPort(context.sockets, this.#fd);
    this.#at = { ...at, port: this.port };
  }

  /** Stops listening and ends all sessions: their answers could not be sent any more. */
  close(): void {
    this.#isClosed = true;
    this.#sweep?.cancel();
    this.#reopen?.cancel();
    for (const [, session] of [...this.#sessions]) session.end();
    if (this.#fd >= 0) this.#shut();
  }

  /** Ends sessions whose endpoint was removed. */
  endpointsChanged(): void {
    for (const [, session] of [...this.#sessions]) {
      if (!this.service.keeps(session.endpoint)) session.end();
    }
  }

  /** The sessions that are open. */
  connections(): ForwardedConnection[] {
    return [...this.#sessions].map(([key, { endpoint }]) =>
      forwarded(this.service.key, Buffer.from(key, 'latin1'), endpoint),
    );
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  #open(at: SocketAddress): number {
    const { sockets, loop } = this.#context;
    const fd = openSocket(sockets, SOCK_DGRAM, at, (socket) => {
      sockets.setOption(socket, SOL_SOCKET, SO_RCVBUF, receiveBufferBytes);
    });
    const token = loop.watch(fd, EPOLLIN, { ready: () => this.#receive() });
    if (token < 0) {
      sockets.close(fd);
      throw new SystemError('epoll_ctl', -token);
    }
    this.#token = token;
    return fd;
  }

  #shut(): void {
    if (this.#token >= 0) this.#context.loop.unwatch(this.#token);
    this.#token = -1;
    this.#context.sockets.close(this.#fd);
    this.#fd = -1;
  }

  #receive(): void {
    const { sockets, scratch } = this.#context;
    for (let i = 0; i < datagramsAtOnce && this.#fd >= 0; i++) {
      const length = sockets.receiveFrom(this.#fd, scratch, this.#sender);
      if (length >= 0) this.#forward(length);
      else if (length === -EAGAIN) return;
      else if (length !== -EINTR) {
        this.#restart(errnoName(-length));
        return;
      }
    }
  }

  /** Tries the next endpoint when one cannot be reached, as often as a TCP connection would. */
  #forward(length: number): void {
    const key = this.#senderText.toString('latin1');
    for (let attempt = 0; attempt < this.#context.dialTimeouts.length; attempt++) {
      const session = this.#sessions.get(key) ?? this.#begin(key);
      if (!session || session.send(this.#context.scratch, length)) return;
    }
  }

  /** Starts a session, which may already be over if its endpoint failed. Returns undefined if a retry cannot help. */
  #begin(key: string): UDPSession | undefined {
    const endpoint = this.#chooseEndpoint();
    if (endpoint === undefined || !this.#makeRoom()) return undefined;
    const client = trimAddress(this.#sender);
    const session = new UDPSession(this.#context, this.service, endpoint, {
      ...(keepsSource(this.#context.sockets, this.#kept, client) && { source: client }),
      reply: (data, size) => this.#context.sockets.sendTo(this.#fd, data, size, client),
      used: () => this.#touch(key, session),
      failed: () => this.#failures.add(decodeAddress(client).ip, endpoint),
      ended: () => this.#forget(key),
    });
    this.#admission.enter(filesOfSession);
    this.#sessions.set(key, session);
    this.#context.log.add(this.service.key, client, endpoint);
    if (!session.start()) return undefined;
    this.#sweep ??= this.#context.clock.setTimeout(() => this.#expire(), this.#context.idleMs);
    return session;
  }

  /** Chooses an endpoint for the sender, if possible none that recently failed it; undefined without endpoints. */
  #chooseEndpoint(): string | undefined {
    const client = (): SocketAddress => decodeAddress(this.#sender);
    const failed = this.#failures.isEmpty ? undefined : this.#failures.of(client().ip);
    return this.service.next(client, failed, false);
  }

  /** At the limit, ends the session that has been idle for longest. Returns whether there is room for another. */
  #makeRoom(): boolean {
    if (this.#admission.admits(this.service.traffic.open)) return true;
    const detail = `${this.service.key}: the limit is reached`;
    this.#context.report('Ending idle UDP sessions to admit new ones', detail);
    this.#sessions.dropOldest()?.end();
    return this.#admission.hasSpare;
  }

  #touch(key: string, session: UDPSession): void {
    session.usedAt = this.#context.clock.monotonic();
    this.#sessions.set(key, session);
  }

  #forget(key: string): void {
    this.#sessions.delete(key);
    this.#admission.leave(filesOfSession);
  }

  /** Ends idle sessions and schedules itself for the next one. */
  #expire(): void {
    const { clock, idleMs } = this.#context;
    this.#sweep = undefined;
    const now = clock.monotonic();
    for (const [, session] of this.#sessions) {
      const left = session.usedAt + idleMs - now;
      if (left > 0) {
        this.#sweep = clock.setTimeout(() => this.#expire(), Math.ceil(left));
        return;
      }
      session.end();
    }
  }

  /** Replaces a failed socket by another one on the same port; retries until that succeeds. */
  #restart(reason: string): void {
    if (this.#isClosed) return;
    const { report, clock } = this.#context;
    report('UDP socket failed; reopening it', `${this.service.key}: ${reason}`);
    if (this.#fd >= 0) this.#shut();
    try {
      this.#fd = this.#open(this.#at);
    } catch (error) {
      const text = messageOf(error);
      this.#reopen = clock.setTimeout(() => this.#restart(text), reopenMs);
    }
  }
}
