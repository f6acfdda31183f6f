import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { replyError } from '../../http/router.ts';
import { API_PATH } from '../../inspect/api.ts';
import { http, reply } from '../../lib/http.ts';
import { messageOf } from '../../lib/thrown.ts';
import { TRACE_PATH } from '../../trace/page-protocol.ts';
import type { Pages } from '../source.ts';
import type { PageFile, PageFiles } from './page-files.ts';
import { type PageTracer, traceAnswerer } from './page-trace.ts';

/** What the browser may do with the answers: nothing comes from elsewhere, and nothing is shown inside other pages. */
const safety = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
} as const;

/** A page of the inspection API: no other path of the proxy is passed on. */
const apiPage = new RegExp(`^${API_PATH}[a-z]*$`);

/**
 * A server that sends the page, passes its questions on to the proxy, and follows packets for it. It must listen at a
 * loopback address.
 */
export function createPageServer(files: PageFiles, pages: Pages, tracer: PageTracer): Server {
  const trace = traceAnswerer(tracer);
  const server = http.createServer((request, response) => {
    for (const [name, value] of Object.entries(safety)) response.setHeader(name, value);
    const refusal = refusalOf(request, portOf(server));
    if (refusal !== undefined) return replyError(response, refusal.status, refusal.text);
    const [path = '', query] = (request.url ?? '').split(/\?(.*)/s);
    const file = files.get(path);
    if (file) return sendFile(response, file);
    if (path === TRACE_PATH) {
      const name = new URLSearchParams(query).get('name') ?? '';
      return void trace(request, response, name).catch(() => response.destroy());
    }
    if (!apiPage.test(path)) return replyError(response, 404, 'there is no such page');
    passOn(response, pages, query === undefined ? path : `${path}?${query}`).catch(() => response.destroy());
  });
  return server;
}

function sendFile(response: ServerResponse, { type, content }: PageFile): void {
  const headers = { 'Content-Type': type, 'Cache-Control': 'no-cache' };
  if (response.req.method === 'HEAD') response.writeHead(200, headers).end();
  else reply(response, 200, headers, content);
}

/** Sends the proxy's answer with its status, or 502 and the reason when there is none. */
async function passOn(response: ServerResponse, pages: Pages, path: string): Promise<void> {
  const answer = await pages.ask(path).catch((error: unknown) => messageOf(error));
  if (typeof answer === 'string') return replyError(response, 502, answer);
  const type = answer.status === 200 ? 'application/json' : 'text/plain; charset=utf-8';
  response.writeHead(answer.status, { 'Content-Type': type, 'Cache-Control': 'no-store' });
  const body = Readable.from(answer.body);
  if (response.req.method !== 'HEAD') return pipeline(body, response);
  body.destroy();
  response.end();
}

/**
 * Why a request is refused; undefined when it is not. A web page can make its own name resolve to 127.0.0.1 (DNS
 * rebinding), or send requests to this port from a user's browser: only this server's own page may ask.
 */
function refusalOf({ method, headers }: IncomingMessage, port: number): Refusal | undefined {
  const { host = '', origin } = headers;
  if (!isOwnHost(host, port)) {
    const text = `host ${JSON.stringify(host)} is not served; use http://127.0.0.1:${port}/`;
    return { status: 403, text };
  }
  if (origin !== undefined && origin !== `http://${host}`) {
    return { status: 403, text: `origin ${JSON.stringify(origin)} may not ask` };
  }
  const site = headers['sec-fetch-site'];
  const isNavigation = headers['sec-fetch-mode'] === 'navigate';
  if (!isNavigation && (site === 'cross-site' || site === 'same-site')) {
    return { status: 403, text: 'other sites may not ask' };
  }
  if (method === 'GET' || method === 'HEAD') return undefined;
  return { status: 405, text: 'only GET and HEAD: this page changes nothing' };
}

interface Refusal {
  readonly status: number;
  readonly text: string;
}

function isOwnHost(host: string, port: number): boolean {
  const [, name = '', itsPort = '80'] = /^(\[::1\]|[^:]*)(?::(\d+))?$/.exec(host.toLowerCase()) ?? [];
  return ['127.0.0.1', 'localhost', '[::1]'].includes(name) && Number(itsPort) === port;
}

/** Where a browser finds the page of a server that listens. */
export function addressOf(server: Server): string {
  return `http://127.0.0.1:${portOf(server)}/`;
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
