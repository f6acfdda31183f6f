import type { Socket } from 'node:net';
import type { Capacity } from './capacity.ts';
import type { Tenant } from './connections.ts';
import type { HttpRequest, RequestListener } from './exchange.ts';
import { RequestBody } from './request-body.ts';
import {
  awaitsContinue,
  invalidRequestReply,
  isKeptAlive,
  maxSkippedBytes,
  type RequestHead,
  readHead,
} from './request-head.ts';
import { type Bytes, HttpResponse } from './response.ts';
import type { ClientKind, Line } from './turns.ts';
import { UnreadBytes } from './unread-bytes.ts';

/** Longer than load balancers and scrapers usually wait between two requests, so that they can keep a connection. */
const idleMs = 150_000;
/** For a request, from its first byte or from the beginning of the connection. */
const requestMs = 15_000;
/** For the client to read some of an answer. */
const readMs = 30_000;
/** Reading stops when this many bytes of further requests are there. */
const mostPipelinedBytes = 16 * 1024;
/** Sent at once; a client that reads shows it piece by piece. */
const pieceBytes = 64 * 1024;
/** What an answer costs that is not complete when its handler returns: as much as a page of /metrics. */
const laterMs = 3;
/** To make and send them. */
const bytesPerMs = 100_000;

type Sent = (error?: Error | null) => void;

/**
 * Serves the requests of one connection, one after the other: the next one is looked at when the client has been sent
 * the answer to the one before. What is not a request gets a 400, and the connection ends.
 */
export class Connection implements Tenant {
  readonly #socket: Socket;
  readonly #listener: RequestListener;
  readonly #line: Line;
  readonly #capacity: Capacity;
  #unread = new UnreadBytes();
  /** The body of the present request, or of the last one while some of it is still to come. */
  #body: RequestBody | undefined;
  /** Bytes written and not taken by the kernel. */
  #unsent = 0;
  #response: HttpResponse | undefined;
  #onBody: (() => void) | undefined;
  #isQueued = false;
  #queuedAt = 0;
  /** Whether the client has sent a request before the answer to the one before. */
  #hasPipelined = false;
  /** What the client has to send next: the rest of a request, or another one; undefined while it gets an answer. */
  #awaited: 'rest' | 'next' | undefined = 'rest';
  /** No request after the present one is served. */
  #isLast = false;
  #hasEnded = false;
  #hasClientEnded = false;
  #isGone = false;
  #bytesAfterEnd = 0;

  constructor(socket: Socket, listener: RequestListener, line: Line, capacity: Capacity) {
    this.#socket = socket;
    this.#listener = listener;
    this.#line = line;
    this.#capacity = capacity;
    const { connections } = capacity;
    connections.add(this);
    connections.waits(this, requestMs);
    socket.on('error', () => this.destroy()).on('close', () => this.destroy());
    socket.on('data', (bytes: Buffer) => this.#read(bytes)).on('end', () => this.#endOfRequests());
  }

  get bytes(): number {
    return this.#unread.length + this.#unsent;
  }

  get #kind(): ClientKind {
    if (this.#hasPipelined) return 'pipelined';
    // A client on this machine has the address that it connects to, unless it asks for another one.
    return this.#socket.remoteAddress === this.#socket.localAddress ? 'local' : 'prompt';
  }

  get #isAwaitingRequest(): boolean {
    return !this.#response && !this.#isQueued;
  }

  /** Closes the connection: now, or when the request that is there is answered. */
  endAfterAnswer(): void {
    this.#isLast = true;
    if (this.#isAwaitingRequest) this.destroy();
  }

  destroy(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#capacity.connections.hold(-this.bytes);
    this.#capacity.connections.remove(this);
    this.#line.leave(this);
    this.#unread.drop(this.#unread.length);
    this.#socket.destroy();
    this.#response?.destroy();
    this.#onBody?.();
  }

  #read(bytes: Buffer): void {
    if (this.#hasEnded) {
      this.#discard(bytes.length);
      return;
    }
    this.#capacity.connections.hold(bytes.length);
    this.#unread.add(bytes);
    if (this.#onBody) this.#onBody();
    else if (this.#isAwaitingRequest) this.#queue();
    else if (this.#unread.length > mostPipelinedBytes) this.#socket.pause();
  }

  /** A client may not have read the answer yet while it sends the rest of its request. */
  #discard(length: number): void {
    this.#bytesAfterEnd += length;
    if (this.#bytesAfterEnd > maxSkippedBytes) this.destroy();
  }

  #drop(length: number): void {
    if (this.#isGone) return;
    this.#unread.drop(length);
    this.#capacity.connections.hold(-length);
  }

  #queue(): void {
    if (this.#isGone) return;
    this.#isQueued = true;
    this.#queuedAt = this.#capacity.clock.monotonic();
    // While it waits for its turn, no more is read.
    if (!this.#capacity.turns.take(this, this.#line, this.#kind)) this.#socket.pause();
  }

  /** Serves the next request if it is complete. */
  work(): void {
    this.#isQueued = false;
    if (!this.#readBody()) {
      this.destroy();
      return;
    }
    if (this.#body?.isComplete) this.#body = undefined;
    const reading = this.#body || this.#unread.length === 0 ? undefined : readHead(this.#unread.headText());
    if (reading === undefined) this.#awaitMore();
    else if (typeof reading === 'string') this.#refuse(reading);
    else {
      this.#drop(reading.length);
      this.#serve(reading.head);
    }
  }

  /** Reads what has come of the body. Returns false if it is not one, or too long. */
  #readBody(): boolean {
    if (!this.#body) return true;
    const length = this.#body.read(this.#unread.text());
    if (length === undefined) return false;
    this.#drop(length);
    return this.#body.length <= maxSkippedBytes;
  }

  #awaitMore(): void {
    if (this.#hasClientEnded) {
      this.#end();
      return;
    }
    const awaited = this.#unread.length === 0 && !this.#body ? 'next' : 'rest';
    if (awaited !== this.#awaited) {
      this.#awaited = awaited;
      this.#capacity.connections.waits(this, awaited === 'next' ? idleMs : requestMs);
    }
    this.#socket.resume();
  }

  #refuse(status: string): void {
    this.#end(invalidRequestReply(status));
  }

  #end(lastBytes = ''): void {
    this.#hasEnded = true;
    this.#drop(this.#unread.length);
    this.#capacity.connections.waits(this, requestMs);
    this.#socket.resume();
    this.#socket.end(lastBytes);
  }

  #serve(head: RequestHead): void {
    const { connections, turns } = this.#capacity;
    connections.isAwaited(this);
    this.#awaited = undefined;
    const body = new RequestBody(head);
    this.#body = body.isComplete ? undefined : body;
    const response = new HttpResponse(head, isKeptAlive(head) && !this.#isLast, {
      date: this.#capacity.date.now,
      send: (bytes, callback) => this.#send(bytes, callback),
      ended: (isComplete) => this.#answered(response, isComplete),
    });
    this.#response = response;
    // To notice that the client goes.
    if (this.#unread.length <= mostPipelinedBytes) this.#socket.resume();
    this.#listener(this.#requestOf(head, body), response);
    if (!response.writableEnded) turns.charge(laterMs);
  }

  #requestOf(head: RequestHead, body: RequestBody): HttpRequest {
    return {
      method: head.method,
      url: head.url,
      remoteAddress: this.#socket.remoteAddress,
      waitsSince: this.#queuedAt,
      header: (name) => head.headers.get(name)?.join(', '),
      body: () => this.#awaitBody(head, body),
    };
  }

  #awaitBody(head: RequestHead, body: RequestBody): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    this.#capacity.connections.waits(this, requestMs);
    if (awaitsContinue(head)) this.#send(['HTTP/1.1 100 Continue\r\n\r\n'], () => {});
    this.#onBody = () => {
      const isBroken = !this.#readBody() || (this.#hasClientEnded && !body.isKept);
      if (isBroken && !this.#isGone) this.destroy();
      if (this.#isGone) reject(new Error('the client disconnected'));
      else if (!body.isKept) return;
      else resolve(body.kept);
      this.#onBody = undefined;
      this.#capacity.connections.isAwaited(this);
    };
    this.#onBody();
    return promise;
  }

  #send(bytes: readonly Bytes[], callback: Sent): void {
    if (this.#isGone) {
      callback(new Error('the client disconnected'));
      return;
    }
    if (this.#hasClientEnded && this.#response?.isStream) {
      this.destroy();
      return;
    }
    const pieces = bytes.flatMap(piecesOf);
    const length = lengthOf(pieces);
    this.#capacity.turns.charge(length / bytesPerMs);
    this.#sent(length);
    this.#sendPieces(pieces, callback);
  }

  /** Sends as many of the pieces as are sent at once, then the others. */
  #sendPieces(pieces: readonly Bytes[], callback: Sent): void {
    let count = 1;
    while (count < pieces.length && lengthOf(pieces.slice(0, count + 1)) <= pieceBytes) count++;
    const length = lengthOf(pieces.slice(0, count));
    this.#write(pieces.slice(0, count), (error) => {
      if (this.#isGone) return callback(error ?? new Error('the client disconnected'));
      this.#sent(-length);
      if (this.#unsent === 0) this.#capacity.connections.isAwaited(this);
      if (error || count === pieces.length) callback(error);
      else this.#sendPieces(pieces.slice(count), callback);
    });
    // Most answers are taken by the kernel at once.
    if (this.#socket.writableLength > 0) this.#capacity.connections.waits(this, readMs);
  }

  /** Writes the pieces with one call of the kernel. */
  #write(pieces: readonly Bytes[], callback: Sent): void {
    const last = pieces.at(-1) ?? '';
    if (pieces.length > 1) this.#socket.cork();
    for (const piece of pieces.slice(0, -1)) this.#socket.write(piece);
    this.#socket.write(last, callback);
    if (pieces.length > 1) this.#socket.uncork();
  }

  #sent(bytes: number): void {
    this.#unsent += bytes;
    this.#capacity.connections.hold(bytes);
  }

  #answered(response: HttpResponse, isComplete: boolean): void {
    this.#response = undefined;
    this.#onBody = undefined;
    if (this.#isGone) return;
    if (!isComplete) this.destroy();
    else if (!response.isKept || this.#isLast) this.#end();
    else if (this.#unread.length === 0) this.#awaitMore();
    else {
      this.#hasPipelined = true;
      this.#queue();
    }
  }

  /** A client that sends its end may still read the answer. Only an answer that goes on until the client goes is given up. */
  #endOfRequests(): void {
    this.#hasClientEnded = true;
    if (this.#hasEnded) return;
    this.#response?.emit('hangup');
    if (this.#response?.isStream) this.destroy();
    else if (this.#isAwaitingRequest) this.#end();
    else this.#onBody?.();
  }
}

function lengthOf(pieces: readonly Bytes[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** The same bytes in pieces that are sent at once. */
function piecesOf(bytes: Bytes): Bytes[] {
  if (bytes.length <= pieceBytes) return [bytes];
  const all = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
  const pieces: Bytes[] = [];
  for (let at = 0; at < all.length; at += pieceBytes) pieces.push(all.subarray(at, at + pieceBytes));
  return pieces;
}
