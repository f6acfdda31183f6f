import { isIP } from 'node:net';
import type { HttpRequest } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import { type Handler, notFound, type Routes, replyError, textHeaders } from '../http/router.ts';
import { affinityParameters, readAffinityQuestion } from '../inspect/affinity.ts';
import { API_PATH, API_VERSION, type NodeReport } from '../inspect/api.ts';
import { type Inspector, NotReadyError } from '../inspect/inspector.ts';
import { journalParameters } from '../inspect/journal-report.ts';
import { QuestionError, questionParameters, readQuestion } from '../inspect/question.ts';
import { type Selector, selectorParameters } from '../inspect/selection.ts';
import { flowParameters, readFlowQuestion, readGrouping, trafficParameters } from '../inspect/traffic.ts';
import type { FlowEvent } from '../inspect/traffic-api.ts';
import type { Clock } from '../lib/clock.ts';
import { type Replier, reply } from '../lib/http.ts';
import { redact } from '../lib/redact.ts';
import { messageOf } from '../lib/thrown.ts';
import { LineStream, sendBatches, sendList } from './json-stream.ts';

export interface InspectionPagesOptions {
  readonly inspector: Inspector;
  /** Whether this address may use the API. */
  readonly admits: (address: string | undefined) => boolean;
  readonly node: () => Promise<NodeReport>;
  /** The last log records, the oldest first. */
  readonly log: () => readonly string[];
  readonly clock: Clock;
}

/** The query parameters of each page; the other pages have none. */
const parametersOf: Readonly<Record<string, readonly string[]>> = {
  services: selectorParameters,
  endpoints: selectorParameters,
  explain: questionParameters,
  journal: journalParameters,
  traffic: trafficParameters,
  flows: flowParameters,
  affinity: affinityParameters,
};

const jsonHeaders = { ...textHeaders, 'Content-Type': 'application/json', 'Cache-Control': 'no-store' };

/** The read-only inspection API: what the proxy decided and what the kernel holds, as JSON. */
export function inspectionHandler(options: InspectionPagesOptions): Handler {
  const pages = inspectionPages(options);
  return async (request, response, target) => {
    if (replyIfForbidden(request, response, options.admits)) return;
    const name = target.path.slice(API_PATH.length);
    const page = Object.hasOwn(pages, name) ? pages[name] : undefined;
    try {
      if (page) checkParameters(name, target.query);
      await (page ?? notFound)(request, response, target);
    } catch (error) {
      if (error instanceof QuestionError) replyError(response, 400, error.message);
      else if (error instanceof NotReadyError) replyError(response, 503, error.message);
      else throw error;
    }
  };
}

/** Pages by the part of the path after API_PATH; API_PATH itself lists them. */
function inspectionPages({ inspector, node, log, clock }: InspectionPagesOptions): Routes {
  const list = async (response: HttpResponse, head: object, items: Iterable<object>) => {
    response.writeHead(200, jsonHeaders);
    await sendList(response, head, response.request.method === 'HEAD' ? [] : items, clock);
  };
  const listOf = (kind: string) => ({ apiVersion: API_VERSION, kind });
  const pages: Routes = {
    status: (_request, response) => replyJSON(response, inspector.status()),
    services: async (_request, response, { query }) =>
      list(response, listOf('ServiceList'), await inspector.services(selectorOf(query))),
    endpoints: async (_request, response, { query }) =>
      list(response, listOf('EndpointList'), await inspector.endpoints(selectorOf(query))),
    explain: async (_request, response, { query }) =>
      replyJSON(response, await inspector.explain(readQuestion((name) => query.get(name)))),
    diff: async (_request, response) => {
      const { head, items } = await inspector.compare();
      await list(response, head, items);
    },
    traffic: async (_request, response, { query }) => {
      const question = { ...selectorOf(query), by: readGrouping(query.get('by')) };
      const { head, items } = await inspector.traffic(question);
      await list(response, head, items);
    },
    flows: async (request, response, { query }) => {
      const question = readFlowQuestion((name) => query.get(name));
      const isHead = request.method === 'HEAD';
      if (isWatch(query.get('watch'))) {
        const lines = new LineStream(response, (count) => lostLine(count, clock.now()), clock);
        const end = await inspector.watchFlows(
          question,
          (event) => lines.write(event),
          () => lines.end(),
        );
        response.on('close', end);
        if (response.destroyed) return end();
        response.writeHead(200, jsonHeaders);
        if (isHead) response.end();
        else response.flushHeaders();
        return;
      }
      const { head, send } = await inspector.flows(question);
      response.setFields(jsonHeaders);
      await sendBatches(response, head, isHead ? async () => {} : send).catch((error: unknown) => {
        throw new NotReadyError(messageOf(error));
      });
    },
    affinity: async (_request, response, { query }) => {
      const { head, items } = await inspector.affinity(readAffinityQuestion((name) => query.get(name)));
      await list(response, head, items);
    },
    journal: async (_request, response, { query }) => {
      const question = { ...selectorOf(query), since: query.get('since') ?? '' };
      const { items, ...head } = await inspector.journal(question);
      await list(response, head, items);
    },
    log: (_request, response) =>
      list(
        response,
        listOf('Log'),
        log().map((record) => ({ record: redact(record) })),
      ),
    node: async (_request, response) => replyJSON(response, await node()),
  };
  const index = { ...listOf('Index'), paths: Object.keys(pages).map((name) => API_PATH + name) };
  return { ...pages, '': (_request, response) => replyJSON(response, index) };
}

/** Throws `QuestionError` when the query has a parameter that the page does not know. */
function checkParameters(page: string, query: URLSearchParams): void {
  const known = parametersOf[page] ?? [];
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const all = `${page === '' ? 'the index' : page} has ${known.join(', ') || 'none'}`;
  throw new QuestionError(`unknown parameter ${JSON.stringify(unknown)}; ${all}`);
}

function isWatch(text: string | null): boolean {
  if (text === null || text === 'false') return false;
  if (text === 'true') return true;
  throw new QuestionError(`watch ${JSON.stringify(text)} is neither true nor false`);
}

/** Tells that the reader was too slow for this many events. */
function lostLine(count: number, now: number): FlowEvent {
  const time = new Date(now).toISOString();
  return { apiVersion: API_VERSION, kind: 'FlowEvent', time, event: 'Lost', flow: null, reason: null, count };
}

function selectorOf(query: URLSearchParams): Selector {
  return { name: query.get('name') ?? '', namespace: query.get('namespace') ?? '' };
}

/** Replies 403 or 405 to a disallowed request; returns whether it replied. */
function replyIfForbidden(
  request: HttpRequest,
  response: Replier,
  admits: InspectionPagesOptions['admits'],
): boolean {
  const { remoteAddress } = request;
  if (!admits(remoteAddress)) {
    const who = remoteAddress?.replace(/^::ffff:/, '') ?? 'an unknown address';
    replyError(response, 403, `${API_PATH} is not open to ${who}; start kube-proxy with --inspection-from`);
    return true;
  }
  const host = request.header('host');
  if (host !== undefined && !isTrustedHost(host)) {
    const which = JSON.stringify(host);
    replyError(
      response,
      403,
      `${API_PATH} does not answer requests for host ${which}; use an IP address or localhost`,
    );
    return true;
  }
  if (request.method === 'GET' || request.method === 'HEAD') return false;
  const headers = { ...textHeaders, Allow: 'GET, HEAD' };
  reply(response, 405, headers, 'only GET and HEAD: these pages change nothing\n');
  return true;
}

/**
 * Whether a Host header has an IP address or `localhost`. A web page can make its own name resolve to 127.0.0.1 (DNS
 * rebinding); the browser of a user on the node then lets the page read what this server answers for that name.
 */
function isTrustedHost(header: string): boolean {
  const host = header.replace(/:\d*$/, '');
  return host.toLowerCase() === 'localhost' || isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0;
}

function replyJSON(response: Replier, body: object): void {
  reply(response, 200, jsonHeaders, `${JSON.stringify(body)}\n`);
}
