import type { Agent, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import { http } from '../lib/http.ts';

/** One request over HTTP, ready to send. */
export interface Exchange {
  readonly url: URL;
  readonly method: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer | undefined;
  readonly agent: Agent;
  readonly signal: AbortSignal;
}

/** Sends a request; resolves when the answer begins, whatever its status. */
export async function exchange(call: Exchange): Promise<IncomingMessage> {
  try {
    return await sendOnce(call);
  } catch (error) {
    // A server may close a kept connection just when it is used again. Asking once more is safe for a read.
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
    // Stays after the answer: an abort is reported here once more, when its reader already knows.
    sent.on('error', (error) => {
      const stale = sent.reusedSocket && !signal.aborted;
      reject(stale ? new StaleConnection(error.message, { cause: error }) : error);
    });
    sent.end(body);
  });
}
