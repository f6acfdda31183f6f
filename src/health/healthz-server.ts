import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../lib/clock.ts';
import type { Counter } from '../obs/metrics.ts';
import type { ProxyHealth } from './proxy-health.ts';
import { formatRFC3339, zeroTime } from './rfc3339.ts';

export interface HealthzOptions {
  readonly health: ProxyHealth;
  /** Whether load balancers may send new connections to this node. */
  readonly nodeEligible: () => boolean;
  readonly clock: Clock;
  /** Answers by status code. */
  readonly healthzTotal: Counter;
  readonly livezTotal: Counter;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * The pages of the health server. `/healthz` asks whether traffic should come here and so includes the node;
 * `/livez` asks only whether the proxy works.
 */
export function healthzRoutes(options: HealthzOptions): {
  readonly '/healthz': Handler;
  readonly '/livez': Handler;
} {
  return {
    '/healthz': (_request, response) => {
      const nodeEligible = options.nodeEligible();
      answer(response, options, options.healthzTotal, nodeEligible);
    },
    '/livez': (_request, response) => answer(response, options, options.livezTotal, undefined),
  };
}

/** `nodeEligible` is undefined where the node does not count and is not shown. */
function answer(
  response: ServerResponse,
  { health, clock }: HealthzOptions,
  total: Counter,
  nodeEligible: boolean | undefined,
): void {
  const { healthy, lastUpdated: newest, families } = health.health();
  const lastUpdated = newest === undefined ? zeroTime : formatRFC3339(newest);
  const now = clock.now();
  const good = healthy && nodeEligible !== false;
  const status = [...families].map(([family, state]) => [
    family,
    { lastUpdated: formatRFC3339(state.lastUpdated), healthy: state.healthy },
  ]);
  // Key order is part of the format, and JSON.stringify leaves out what is undefined.
  const body = JSON.stringify({
    lastUpdated: good ? formatRFC3339(now) : lastUpdated,
    currentTime: formatRFC3339(now),
    nodeEligible,
    healthy,
    status: status.length > 0 ? Object.fromEntries(status) : undefined,
  });
  const code = good ? 200 : 503;
  total.inc({ code: String(code) });
  response
    .writeHead(code, {
      'Content-Type': 'application/json',
      'X-Content-Type-Options': 'nosniff',
      'Content-Length': Buffer.byteLength(body),
    })
    .end(body);
}
