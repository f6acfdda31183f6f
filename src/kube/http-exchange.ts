import type { Agent, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Clock, Timer } from '../lib/clock.ts';
import { http } from '../lib/http.ts';
import { IdleError, TransportError, transportErrorOf } from './api-error.ts';

/** One request over HTTP, ready to send. */
export interface Exchange {
  readonly url: URL;
  readonly method: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer | undefined;
  readonly agent: Agent;
  readonly signal: AbortSignal;
}

/** Sends a request; resolves with any status as soon as the answer begins. */
export async function exchange(call: Exchange): Promise<IncomingMessage> {
  try {
    return await sendOnce(call);
  } catch (error) {
    // The server may close an idle connection just as it is reused. Repeating is safe for a read.
    if (!(error instanceof StaleConnection) || call.method !== 'GET') throw error;
    return sendOnce(call);
  }
}

class StaleConnection extends Error {}

function sendOnce(call: Exchange): Promise<IncomingMessage> {
  const { url, method, headers, body, agent, signal } = call;
  const { request } = url.protocol === 'https:' ? https : http;
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent, signal });
    sent.once('response', resolve);
    // Not once: an abort after the answer has begun is emitted here, too.
    sent.on('error', (error) => {
      const stale = sent.reusedSocket && !signal.aborted;
      reject(stale ? new StaleConnection(error.message, { cause: error }) : error);
    });
    sent.end(body);
  });
}

export interface BodyOptions {
  readonly idleMs: () => number;
  readonly clock: Clock;
  /** The signal of the request; after an abort, reading fails with its reason. */
  readonly signal: AbortSignal;
}

/**
 * Yields the body of an answer, decompressed. Fails with `IdleError` when no data arrives for `idleMs`, not counting
 * the time that the consumer takes. Leaving the loop early closes the connection.
 */
export async function* readBody(answer: IncomingMessage, options: BodyOptions): AsyncGenerator<Uint8Array> {
  const { idleMs, clock, signal } = options;
  const body = decompressed(answer);
  const chunks = body.iterator({ destroyOnReturn: true });
  const silence = new Silence(answer.socket, clock, (ms) =>
    body.destroy(new IdleError(`nothing received for ${ms / 1000} s`)),
  );
  try {
    for (;;) {
      silence.begin(idleMs());
      const next = await chunks.next().finally(() => silence.end());
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    throw transportErrorOf(error, signal);
  } finally {
    body.destroy();
  }
}

/**
 * Notices when the other end sends nothing. A process that got no CPU time may find its timer expired and data waiting in
 * the socket; so silence counts only after the socket was read.
 */
class Silence {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #onExpiry: (ms: number) => void;
  #timer: Timer | undefined;
  #received = 0;

  constructor(socket: Socket, clock: Clock, onExpiry: (ms: number) => void) {
    this.#socket = socket;
    this.#clock = clock;
    this.#onExpiry = onExpiry;
  }

  begin(ms: number): void {
    this.#received = this.#socket.bytesRead;
    const timer = this.#clock.setTimeout(() => {
      // The event loop reads sockets between timers and this.
      setImmediate(() => this.#expire(timer, ms));
    }, ms);
    this.#timer = timer;
  }

  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #expire(timer: Timer, ms: number): void {
    if (this.#timer !== timer) return;
    if (this.#socket.bytesRead === this.#received) this.#onExpiry(ms);
    else this.begin(ms);
  }
}

function decompressed(answer: IncomingMessage): Readable {
  if (answer.headers['content-encoding'] !== 'gzip') return answer;
  // Errors of both streams reach the consumer through the last one.
  return pipeline(answer, createGunzip({ chunkSize: 65_536 }), () => {});
}

/** The whole body; fails when it is longer than `limit` bytes. */
export async function readBytes(chunks: AsyncIterable<Uint8Array>, limit: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > limit) throw new TransportError(`the answer is larger than ${limit} bytes`);
    pieces.push(chunk);
  }
  return Buffer.concat(pieces);
}
