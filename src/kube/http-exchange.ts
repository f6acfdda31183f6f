import type { Agent, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Clock } from '../lib/clock.ts';
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
  try {
    for (;;) {
      const limit = idleMs();
      const expire = () => body.destroy(new IdleError(`nothing received for ${limit / 1000} s`));
      const timer = clock.setTimeout(expire, limit);
      const next = await chunks.next().finally(() => timer.cancel());
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    throw transportErrorOf(error, signal);
  } finally {
    body.destroy();
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
