import type { Clock } from '../lib/clock.ts';
import { jsonHeaders, type Replier, reply } from '../lib/http.ts';
import { isServing, type Problem } from '../model/problem.ts';
import type { Counter } from '../obs/metrics.ts';
import type { Problems } from './problems.ts';
import type { ProxyHealth } from './proxy-health.ts';

interface HealthzOptions {
  readonly health: ProxyHealth;
  readonly problems: Problems;
  /** Whether load balancers may send new connections to this node. */
  readonly nodeEligible: () => boolean;
  readonly clock: Clock;
  /** Answers by status code. */
  readonly healthzTotal: Counter;
  readonly livezTotal: Counter;
}

type Handler = (request: unknown, response: Replier) => void;

/**
 * The pages of the health server. `/healthz` says whether traffic should come to this node; `/livez` says only whether
 * a restart could help: whether requested syncs succeed.
 */
export function healthzRoutes(options: HealthzOptions): {
  readonly '/healthz': Handler;
  readonly '/livez': Handler;
} {
  return {
    '/healthz': (_request, response) =>
      answer(response, options, options.healthzTotal, options.problems.list(), options.nodeEligible()),
    '/livez': (_request, response) =>
      answer(response, options, options.livezTotal, options.health.problems(), undefined),
  };
}

/** An undefined `nodeEligible` is not shown and does not count. */
function answer(
  response: Replier,
  { health, clock }: HealthzOptions,
  total: Counter,
  problems: readonly Problem[],
  nodeEligible: boolean | undefined,
): void {
  const times = health.lastUpdated();
  const lastUpdated = times.size === 0 ? zeroTime : formatRFC3339(Math.max(...times.values()));
  const now = clock.now();
  const outages = problems.filter(({ isOutage }) => isOutage);
  const healthy = outages.length === 0;
  const good = healthy && nodeEligible !== false;
  const status = [...times].map(([family, time]) => [
    family,
    { lastUpdated: formatRFC3339(time), healthy: isServing(family, outages) },
  ]);
  // Key order is part of the format. JSON.stringify omits undefined fields.
  const body = JSON.stringify({
    lastUpdated: good ? formatRFC3339(now) : lastUpdated,
    currentTime: formatRFC3339(now),
    nodeEligible,
    healthy,
    status: status.length > 0 ? Object.fromEntries(status) : undefined,
    problems: healthy ? undefined : outages.map(({ family, text }) => (family ? `${family}: ${text}` : text)),
  });
  const code = good ? 200 : 503;
  total.inc({ code: String(code) });
  reply(response, code, jsonHeaders, body);
}

/** Go's zero time, which means "never". */
const zeroTime = '0001-01-01T00:00:00Z';

/** Formats a time like Go's RFC3339Nano: local time with its offset (`Z` for UTC), no trailing zeros. */
export function formatRFC3339(ms: number, offsetMinutes = -new Date(ms).getTimezoneOffset()): string {
  const text = new Date(ms + offsetMinutes * 60_000).toISOString().slice(0, -1);
  return text.replace(/\.?0+$/, '') + zone(offsetMinutes);
}

function zone(offsetMinutes: number): string {
  if (offsetMinutes === 0) return 'Z';
  const size = Math.abs(offsetMinutes);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${offsetMinutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}
