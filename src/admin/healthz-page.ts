import { type Handler, type Routes, textHeaders } from '../http/router.ts';
import type { Clock } from '../lib/clock.ts';
import { reply } from '../lib/http.ts';
import type { Counter, Gauge } from '../obs/metrics.ts';
import { registerStartTime } from '../obs/process-metrics.ts';
import { Registry, type RegistryOptions } from '../obs/registry.ts';
import { metricsHandler } from './metrics-page.ts';

/** The labels of this server's only check. */
const check = { name: 'ping', type: 'healthz' };

/** Metrics of health checks, on a page of their own so that they can be scraped often. */
interface Indicators {
  readonly registry: Registry;
  readonly health: Gauge;
  readonly checks: Counter;
}

/**
 * `/healthz` of the metrics server with its only check, `ping`, and the page of its results. It says only that the
 * process answers; the health server reports whether programming works.
 */
export function pingRoutes(options: {
  readonly clock: Clock;
  readonly startTime: number;
  readonly onCollectError: RegistryOptions['onCollectError'];
}): Routes {
  const indicators = createIndicators(options);
  const show = metricsHandler(indicators.registry, options.startTime, options.clock);
  return {
    '/healthz': healthzHandler(indicators),
    '/healthz/ping': (_request, response) => {
      recordSuccess(indicators);
      reply(response, 200, textHeaders, 'ok');
    },
    '/metrics/slis': (request, response, target) => {
      if (request.method !== 'DELETE') return show(request, response, target);
      indicators.registry.reset();
      reply(response, 200, { 'Content-Type': textHeaders['Content-Type'] }, 'metrics reset\n');
    },
  };
}

function healthzHandler(indicators: Indicators): Handler {
  return (_request, response, { query }) => {
    const excluded = query.getAll('exclude');
    const skipped = excluded.includes(check.name);
    if (!skipped) recordSuccess(indicators);
    if (!query.has('verbose')) return reply(response, 200, textHeaders, 'ok');
    const unknown = excluded.filter((name) => name !== check.name).map((name) => JSON.stringify(name));
    const warning =
      unknown.length > 0
        ? `warn: some health checks cannot be excluded: no matches for ${unknown.join(',')}\n`
        : '';
    const result = `[+]${check.name} ${skipped ? 'excluded: ok' : 'ok'}\n`;
    reply(response, 200, textHeaders, `${result}${warning}healthz check passed\n`);
  };
}

function createIndicators(options: RegistryOptions & { startTime: number }): Indicators {
  const registry = new Registry({ clock: options.clock, onCollectError: options.onCollectError });
  const health = registry.gauge({
    name: 'kubernetes_healthcheck',
    help: 'Result of a health check, 1 when it passed',
    labels: ['name', 'type'],
    stability: 'STABLE',
  });
  const checks = registry.counter({
    name: 'kubernetes_healthchecks_total',
    help: 'Health checks made, by result',
    labels: ['name', 'type', 'status'],
    stability: 'STABLE',
  });
  registerStartTime(registry, options.startTime);
  return { registry, health, checks };
}

function recordSuccess({ health, checks }: Indicators): void {
  health.set(1, check);
  checks.inc({ ...check, status: 'success' });
}
