import {
  EAGAIN,
  EINVAL,
  ENOSYS,
  EPOLLERR,
  EPOLLET,
  EPOLLHUP,
  EPOLLIN,
  EPOLLOUT,
  EPOLLRDHUP,
  type Sockets,
} from '../native/sockets.ts';
import type { EventLoop } from './event-loop.ts';
import type { Splice, SplicePool } from './splice-pool.ts';

/** All events of a connected socket, edge-triggered. */
export const streamEvents = (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) >>> 0;

/** What all relays of a thread share. */
export interface RelayContext {
  readonly sockets: Sockets;
  readonly loop: EventLoop;
  /** Read buffer for all connections; only what a receiver does not take at once is copied out of it. */
  readonly scratch: Uint8Array;
  readonly splices: SplicePool;
}

/** One end of a connection: its descriptor and its readiness. */
export class Stream {
  readonly fd: number;
  token = -1;
  isReadable = false;
  isWritable = false;
  /** The peer has closed at least its sending half; reading goes on until end of file. */
  isEnding = false;
  /** The connection is broken. epoll reports this only once. */
  hasFailed = false;

  constructor(fd: number) {
    this.fd = fd;
  }

  note(events: number): void {
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) this.isReadable = true;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) this.isWritable = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) this.isEnding = true;
    if (events & EPOLLERR) this.hasFailed = true;
  }
}

/** Reads by one direction before other connections get their turn. */
const maxTurns = 16;
/** After this many full reads in a row it is a bulk transfer, and splice pays off. */
const bulkReads = 4;
const spliceBytes = 1 << 20;
const unsupported = new Set([-EINVAL, -ENOSYS]);

type Progress = 'waiting' | 'more' | 'finished' | 'failed';

/** One direction of a connection. Reads only as fast as the receiver takes, so a slow receiver slows the sender down. */
export class Direction {
  readonly #context: RelayContext;
  readonly #from: Stream;
  readonly #to: Stream;
  readonly #count: (bytes: number) => void;
  #pending: Uint8Array | undefined;
  #hasEnded = false;
  #fullReads = 0;
  #splice: Splice | undefined;
  isFinished = false;

  constructor(context: RelayContext, from: Stream, to: Stream, count: (bytes: number) => void) {
    this.#context = context;
    this.#from = from;
    this.#to = to;
    this.#count = count;
  }

  /** Moves the available bytes. Returns `finished` once: at end of file, after everything was passed on. */
  pump(): Progress {
    for (let turn = 0; turn < maxTurns; turn++) {
      const progress = this.#splice ? this.#move(this.#splice) : this.#copy();
      if (progress !== 'more') return progress;
    }
    return 'more';
  }

  release(): void {
    if (this.#splice) this.#context.splices.give(this.#splice);
    this.#splice = undefined;
    this.#pending = undefined;
  }

  #copy(): Progress {
    if (this.#pending) {
      if (!this.#to.isWritable) return 'waiting';
      if (!this.#write(this.#pending, this.#pending.length)) return 'failed';
      if (this.#pending) return 'waiting';
    }
    if (this.#hasEnded) return this.#finish();
    if (!this.#from.isReadable || !this.#to.isWritable) return 'waiting';
    const { sockets, scratch } = this.#context;
    const length = sockets.read(this.#from.fd, scratch);
    if (length < 0) return this.#blocked(length, this.#from);
    if (length === 0) {
      this.#hasEnded = true;
      return this.#finish();
    }
    if (length < scratch.length && !this.#from.isEnding) this.#from.isReadable = false;
    this.#fullReads = length === scratch.length ? this.#fullReads + 1 : 0;
    if (!this.#write(scratch, length)) return 'failed';
    if (this.#fullReads >= bulkReads && !this.#pending) this.#splice = this.#context.splices.take();
    return this.#pending ? 'waiting' : 'more';
  }

  /** Sends, and keeps a copy of what was not sent. Returns false when the receiver is gone. */
  #write(data: Uint8Array, length: number): boolean {
    const sent = this.#context.sockets.send(this.#to.fd, data, length);
    if (sent < 0 && sent !== -EAGAIN) return false;
    const done = Math.max(sent, 0);
    this.#count(done);
    if (done < length) {
      this.#pending = data.slice(done, length);
      this.#to.isWritable = false;
    } else {
      this.#pending = undefined;
    }
    return true;
  }

  /** Like #copy, but the bytes pass through a pipe in the kernel. */
  #move(splice: Splice): Progress {
    const { sockets } = this.#context;
    if (splice.held > 0) {
      if (!this.#to.isWritable) return 'waiting';
      const sent = sockets.splice(splice.output, this.#to.fd, splice.held);
      if (sent < 0) return this.#blocked(sent, this.#to);
      splice.held -= sent;
      this.#count(sent);
      return 'more';
    }
    if (this.#hasEnded) return this.#finish();
    if (!this.#from.isReadable || !this.#to.isWritable) return 'waiting';
    const taken = sockets.splice(this.#from.fd, splice.input, spliceBytes);
    if (unsupported.has(taken)) return this.#stopMoving();
    if (taken < 0) return this.#blocked(taken, this.#from);
    if (taken === 0) this.#hasEnded = true;
    splice.held = taken;
    return 'more';
  }

  /** Falls back to copying. Nothing is lost: the kernel refused the first splice. */
  #stopMoving(): Progress {
    this.#context.splices.disable();
    this.release();
    return 'more';
  }

  #blocked(result: number, stream: Stream): Progress {
    if (result !== -EAGAIN) return 'failed';
    if (stream === this.#from) stream.isReadable = false;
    else stream.isWritable = false;
    return 'waiting';
  }

  #finish(): Progress {
    if (this.isFinished) return 'waiting';
    this.isFinished = true;
    return 'finished';
  }
}
