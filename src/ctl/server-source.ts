import type { IncomingMessage } from 'node:http';
import { API_PATH, API_VERSION } from '../inspect/api.ts';
import { http } from '../lib/http.ts';
import { messageOf } from '../lib/thrown.ts';
import { jsonLines } from './json-lines.ts';
import type { Patience } from './patience.ts';
import type { AskedPacket, PageAnswer, ReportSource } from './source.ts';

/** Longer than any answer about the largest cluster, shorter than the longest string. */
const maxLength = 500_000_000;

/** The proxy did not answer at all. */
export class NoAnswerError extends Error {
  readonly reason: string;

  constructor(origin: string, reason: string, hint: string, cause: unknown) {
    super(`cannot ask kube-proxy at ${origin}: ${reason}${hint}`, { cause });
    this.reason = reason;
  }
}

/** Asks the inspection API of a running proxy. Errors about a proxy that does not answer end with `hint`. */
export function serverSource(server: string, patience: Patience, hint = ''): ReportSource {
  const base = baseOf(server);
  const limit: TimeLimit = { ms: patience.answerMs, of: 'whole answer' };
  const quick: TimeLimit = { ms: patience.statusMs, of: 'whole answer' };
  const endless: TimeLimit = { ms: patience.answerMs, of: 'first word' };
  const urlOf = (page: string, query: Query) => {
    const url = new URL(API_PATH + page, base);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, value);
    }
    return url;
  };
  const get = <T>(page: string, query: Query = {}, within = limit) =>
    ask(urlOf(page, query), within, hint) as Promise<T>;
  return {
    status: () => get('status', {}, quick),
    services: (selector) => get('services', { ...selector }),
    endpoints: (selector) => get('endpoints', { ...selector }),
    explain: (packet: AskedPacket) => get('explain', { ...packet }),
    diff: () => get('diff'),
    traffic: (question) => get('traffic', { ...question }),
    affinity: (question) => get('affinity', { ...question }),
    flows: (question) => get('flows', { ...question }),
    watchFlows: async (question) =>
      jsonLines(await openPage(urlOf('flows', { ...question, watch: 'true' }), endless, hint)),
    journal: (question) => get('journal', { ...question }),
    pages: {
      ask: (path) => openText(new URL(path, base), limit, hint),
      page: (path) => openPage(new URL(path, base), limit, ''),
    },
    async close() {},
  };
}

/** How long to wait, and for what. */
interface TimeLimit {
  readonly ms: number;
  readonly of: 'whole answer' | 'first word';
}

type Query = Readonly<Record<string, string | undefined>>;

function baseOf(server: string): URL {
  const text = server.includes('://') ? server : `http://${server}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:')
    throw new Error(`the server ${JSON.stringify(server)} is not an http:// URL`);
  return url;
}

async function ask(url: URL, limit: TimeLimit, hint: string): Promise<unknown> {
  const { status, body } = await fetchText(url, limit, hint);
  if (status !== 200) throw new Error(refusal(url, status, body.trim()));
  const report = parse(body);
  const version = report?.apiVersion;
  if (version === API_VERSION) return report;
  throw new Error(
    `${url.origin} answers with ${JSON.stringify(version ?? 'no version')}, not ${API_VERSION}`,
  );
}

function refusal(url: URL, status: number, text: string): string {
  if (status === 404) return `${url.origin} has no ${API_PATH}: it is not this kube-proxy, or an older one`;
  return status === 400 ? text : `${url.origin} answers ${status}: ${text}`;
}

function parse(body: string): { apiVersion?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

async function fetchText(
  url: URL,
  limit: TimeLimit,
  hint: string,
): Promise<{ status: number; body: string }> {
  const answer = await openText(url, limit, hint);
  let body = '';
  for await (const text of answer.body) {
    body += text;
    if (body.length > maxLength) throw new Error(`the answer is longer than ${maxLength} characters`);
  }
  return { status: answer.status, body };
}

async function openText(url: URL, limit: TimeLimit, hint: string): Promise<PageAnswer> {
  const tooLate = new AbortController();
  const timer = setTimeout(() => tooLate.abort(), limit.ms).unref();
  const explained = (error: unknown) => {
    const reason = tooLate.signal.aborted ? `no answer within ${limit.ms / 1000} s` : reasonOf(error);
    return new NoAnswerError(url.origin, reason, hint, error);
  };
  async function* textOf(response: IncomingMessage): AsyncGenerator<string> {
    try {
      yield* response.setEncoding('utf8');
    } catch (error) {
      throw explained(error);
    }
  }
  try {
    const response = await send(url, tooLate.signal);
    if (limit.of === 'first word') clearTimeout(timer);
    return { status: response.statusCode ?? 0, body: textOf(response) };
  } catch (error) {
    throw explained(error);
  }
}

/** Does not read the body; the caller does, piece by piece. */
async function openPage(url: URL, limit: TimeLimit, hint: string): Promise<AsyncIterable<string>> {
  const { status, body } = await openText(url, limit, hint);
  if (status === 200) return body;
  let text = '';
  for await (const piece of body) text += piece;
  throw new Error(refusal(url, status, text.trim()));
}

function send(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    http.get(url, { signal, agent: false }, resolve).on('error', reject);
  });
}

/** Node.js reports one error per address that it tried. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return messageOf(error);
}
