import type { IncomingMessage, ServerResponse } from 'node:http';
import { replyError } from '../../http/router.ts';
import { API_VERSION } from '../../inspect/api.ts';
import { hasNetAdmin } from '../../kernel/capabilities.ts';
import { systemFiles } from '../../kernel/system-files.ts';
import type { Clock } from '../../lib/clock.ts';
import { jsonHeaders, reply } from '../../lib/http.ts';
import { messageOf } from '../../lib/thrown.ts';
import { TRACE_HEADER, TRACE_PACKETS, TRACE_SECONDS, type TraceAbility } from '../../trace/page-protocol.ts';
import type { TraceReport } from '../../trace/report.ts';
import { requireSameKernel } from '../same-kernel.ts';
import { pagesOf, type ReportSource } from '../source.ts';
import { followSubject, proxyKnowledge } from '../trace/follow-subject.ts';
import { subjectOf } from '../trace/subject.ts';

/** Follows packets for the page. */
export interface PageTracer {
  /** Why it cannot; undefined when it can. */
  obstacle(): Promise<string | undefined>;
  /** Follows the packets of a Service until time is over or the signal aborts. */
  follow(name: string, signal: AbortSignal): Promise<TraceReport>;
}

/** Follows packets through the kernel of this process, which must be that of the proxy. */
export function kernelTracer(source: ReportSource, clock: Clock): PageTracer {
  const pages = pagesOf(source);
  return {
    async obstacle() {
      if (pages.onNode !== undefined) return `the proxy of node ${pages.onNode} is asked through kubectl`;
      if (!hasNetAdmin(systemFiles)) return 'the server of this page has no CAP_NET_ADMIN';
      return requireSameKernel(pages).then(() => undefined, messageOf);
    },
    async follow(name, signal) {
      const subject = await subjectOf([name], source, {});
      const proxy = await proxyKnowledge(source, () => undefined);
      const extent = { packets: TRACE_PACKETS, forMs: TRACE_SECONDS * 1000 };
      return followSubject(subject, extent, proxy, clock, signal);
    },
  };
}

/** Answers a request for `TRACE_PATH`. */
export type TraceAnswerer = (
  request: IncomingMessage,
  response: ServerResponse,
  name: string,
) => Promise<void>;

/** Follows packets for one request at a time, and only while its browser waits for the answer. */
export function traceAnswerer(tracer: PageTracer): TraceAnswerer {
  let isBusy = false;
  return async (request, response, name) => {
    if (request.method !== 'GET') return replyError(response, 405, 'only GET');
    if (name === '') return replyJSON(response, await abilityOf(tracer));
    if (request.headers[TRACE_HEADER] === undefined) {
      return replyError(
        response,
        403,
        `only the page may follow packets: there is no header ${TRACE_HEADER}`,
      );
    }
    if (isBusy)
      return replyError(response, 409, 'packets are being followed already; try again in a few seconds');
    isBusy = true;
    try {
      await followFor(response, tracer, name);
    } finally {
      isBusy = false;
    }
  };
}

async function abilityOf(tracer: PageTracer): Promise<TraceAbility> {
  return { apiVersion: API_VERSION, kind: 'TraceAbility', obstacle: (await tracer.obstacle()) ?? null };
}

async function followFor(response: ServerResponse, tracer: PageTracer, name: string): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const obstacle = await tracer.obstacle();
  if (obstacle !== undefined) return replyError(response, 503, obstacle);
  const answer = await tracer.follow(name, gone.signal).catch((error: unknown) => messageOf(error));
  if (typeof answer === 'string') replyError(response, 500, answer);
  else replyJSON(response, answer);
}

function replyJSON(response: ServerResponse, answer: object): void {
  reply(response, 200, { ...jsonHeaders, 'Cache-Control': 'no-store' }, `${JSON.stringify(answer)}\n`);
}
