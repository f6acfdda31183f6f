import type { IncomingMessage } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Clock } from '../lib/clock.ts';
import { IdleError, TransportError, transportErrorOf } from './api-error.ts';

export interface BodyOptions {
  readonly idleMs: () => number;
  readonly clock: Clock;
  /** The signal the request was made with: its reason is what reading fails with after an abort. */
  readonly signal: AbortSignal;
}

/**
 * The body of an answer, decompressed, failing with `IdleError` when nothing comes for `idleMs`. Time the reader
 * takes does not count. Leaving the loop early closes the connection.
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
  // Errors of either end reach the reader through the last stream.
  return pipeline(answer, createGunzip({ chunkSize: 65_536 }), () => {});
}

/** The whole body as text. */
export async function readText(chunks: AsyncIterable<Uint8Array>, limit: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > limit) throw new TransportError(`the answer is larger than ${limit} bytes`);
    pieces.push(chunk);
  }
  return Buffer.concat(pieces).toString('utf8');
}
