import type { IncomingMessage, ServerResponse } from 'node:http';
import { API_PATH, API_VERSION } from '../inspect/api.ts';
import { type Inspector, NotReadyError } from '../inspect/inspector.ts';
import { QuestionError, readQuestion } from '../inspect/question.ts';
import type { Clock } from '../lib/clock.ts';
import { type Handler, notFound, type Routes, reply, replyError, textHeaders } from './http.ts';
import { sendList } from './json-stream.ts';

export interface InspectionPagesOptions {
  readonly inspector: Inspector;
  /** Whether requests from this address are answered. */
  readonly admits: (address: string | undefined) => boolean;
  readonly clock: Clock;
}

const jsonHeaders = { ...textHeaders, 'Content-Type': 'application/json', 'Cache-Control': 'no-store' };

/** The inspection API: what the proxy decided and what the kernel holds, as JSON, to be read and not to be changed. */
export function inspectionHandler(options: InspectionPagesOptions): Handler {
  const pages = inspectionPages(options);
  return async (request, response, target) => {
    if (isRefused(request, response, options.admits)) return;
    const name = target.path.slice(API_PATH.length);
    const page = Object.hasOwn(pages, name) ? pages[name] : undefined;
    await answerQuestion(() => (page ?? notFound)(request, response, target), response);
  };
}

/** By what stands behind the common path; that alone lists them. */
function inspectionPages({ inspector, clock }: InspectionPagesOptions): Routes {
  const list = async (response: ServerResponse, head: object, items: Iterable<object>) => {
    response.writeHead(200, jsonHeaders);
    await sendList(response, head, response.req.method === 'HEAD' ? [] : items, clock);
  };
  const listOf = (kind: string) => ({ apiVersion: API_VERSION, kind });
  const pages: Routes = {
    status: (_request, response) => replyJSON(response, inspector.status()),
    services: (_request, response, { query }) =>
      list(response, listOf('ServiceList'), inspector.services(query.get('name') ?? undefined)),
    endpoints: (_request, response, { query }) =>
      list(response, listOf('EndpointList'), inspector.endpoints(query.get('name') ?? undefined)),
    explain: async (_request, response, { query }) =>
      replyJSON(response, await inspector.explain(readQuestion((name) => query.get(name)))),
    diff: async (_request, response) => {
      const { head, items } = await inspector.compare();
      await list(response, head, items);
    },
    counters: async (_request, response) => {
      const { head, items } = await inspector.counters();
      await list(response, head, items);
    },
  };
  const index = { ...listOf('Index'), paths: Object.keys(pages).map((name) => API_PATH + name) };
  return { ...pages, '': (_request, response) => replyJSON(response, index) };
}

/** Answers who may not ask, or not so; true when that was the case. */
function isRefused(
  request: IncomingMessage,
  response: ServerResponse,
  admits: InspectionPagesOptions['admits'],
): boolean {
  const { remoteAddress } = request.socket;
  if (!admits(remoteAddress)) {
    const who = remoteAddress?.replace(/^::ffff:/, '') ?? 'an unknown address';
    replyError(response, 403, `${API_PATH} is not open to ${who}; start kube-proxy with --inspection-from`);
    return true;
  }
  if (request.method === 'GET' || request.method === 'HEAD') return false;
  reply(
    response,
    405,
    { ...textHeaders, Allow: 'GET, HEAD' },
    'only GET and HEAD: these pages change nothing\n',
  );
  return true;
}

/** A question that makes no sense is the asker's fault. */
async function answerQuestion(answer: () => void | Promise<void>, response: ServerResponse): Promise<void> {
  try {
    await answer();
  } catch (error) {
    if (error instanceof QuestionError) replyError(response, 400, error.message);
    else if (error instanceof NotReadyError) replyError(response, 503, error.message);
    else throw error;
  }
}

function replyJSON(response: ServerResponse, body: object): void {
  reply(response, 200, jsonHeaders, `${JSON.stringify(body)}\n`);
}
