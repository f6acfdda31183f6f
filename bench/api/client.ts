import http from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Answer {
  readonly status: number;
  readonly body: string;
}

const parallel = 16;

/** Writes objects to an API server, as controllers do. */
export class ApiClient {
  readonly url: string;
  readonly token: string;
  readonly #agent: http.Agent;

  constructor(url: string, token: string) {
    this.url = url;
    this.token = token;
    const options = { keepAlive: true, maxSockets: parallel };
    this.#agent = url.startsWith('https:')
      ? new https.Agent({ ...options, rejectUnauthorized: false })
      : new http.Agent(options);
  }

  request(method: string, path: string, body?: unknown): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const send = this.url.startsWith('https:') ? https.request : http.request;
    const headers = { authorization: `Bearer ${this.token}`, 'content-type': type };
    const request = send(`${this.url}${path}`, { method, agent: this.#agent, headers }, async (response) => {
      const pieces: Buffer[] = [];
      for await (const piece of response) pieces.push(piece);
      resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString() });
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
    return promise;
  }

  /** Throws unless the server accepts it. */
  async write(method: 'POST' | 'PATCH', path: string, body: unknown): Promise<void> {
    const answer = await this.request(method, `${path}?fieldManager=kube-controller-manager`, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
  }

  /** Runs `write` for 0 to `count` - 1, several at a time. */
  async writeMany(count: number, write: (index: number) => Promise<void>): Promise<void> {
    let next = 0;
    const worker = async () => {
      while (next < count) await write(next++);
    };
    await Promise.all(Array.from({ length: parallel }, worker));
  }

  /** Runs `write` for 0 to `count` - 1, so many per second. */
  async writeSteadily(
    count: number,
    perSecond: number,
    write: (index: number) => Promise<void>,
  ): Promise<void> {
    const begun = performance.now();
    const pending: Promise<void>[] = [];
    for (let i = 0; i < count; i++) {
      const due = begun + (i * 1000) / perSecond;
      if (due > performance.now()) await sleep(due - performance.now());
      pending.push(write(i));
    }
    await Promise.all(pending);
  }

  close(): void {
    this.#agent.destroy();
  }
}
