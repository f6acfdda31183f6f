import type { RequestListener } from '../http/exchange.ts';
import { createRouter, type Handler, type Routes, textHeaders } from '../http/router.ts';
import { API_PATH } from '../inspect/api.ts';
import type { Clock } from '../lib/clock.ts';
import { reply } from '../lib/http.ts';
import type { Logger } from '../obs/log.ts';
import type { Registry } from '../obs/registry.ts';
import { debugFlagRoutes } from './debug-flags-page.ts';
import { pingRoutes } from './healthz-page.ts';
import { metricsHandler } from './metrics-page.ts';
import { pprofRoutes } from './pprof-page.ts';
import { flagzHandler, type Status, statuszHandler } from './z-pages.ts';

export interface MetricsServerOptions {
  readonly mode: string;
  readonly registry: Registry;
  /** The whole body of /configz. */
  readonly configz: () => string;
  readonly flags: () => ReadonlyMap<string, string>;
  readonly gates: { readonly flagz: boolean; readonly statusz: boolean };
  readonly profiling: boolean;
  readonly setVerbosity: (level: number) => void;
  /** Serves /debug/kube-proxy/. */
  readonly inspection: Handler;
  readonly version: {
    /** The runtime, shown where upstream shows its Go version. */
    readonly runtime: string;
    /** Major and minor: `1.37`. */
    readonly binary: string;
  };
  /** Seconds since the epoch. */
  readonly startTime: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random?: () => number;
}

/** The request listener behind the metrics port. */
export function metricsServerHandler(options: MetricsServerOptions): RequestListener {
  const { clock, logger, startTime, registry } = options;
  const onCollectError = (error: unknown) => logger.error(error, 'Failed to read metrics');
  return createRouter(
    {
      ...pingRoutes({ clock, startTime, onCollectError }),
      '/metrics': metricsHandler(registry, startTime, clock),
      '/proxyMode': (_request, response) => reply(response, 200, textHeaders, options.mode),
      '/configz': (_request, response) =>
        reply(response, 200, { ...textHeaders, 'Content-Type': 'application/json' }, options.configz()),
      ...zRoutes(options),
      [`${API_PATH}*`]: options.inspection,
      ...(options.profiling ? { ...pprofRoutes(clock), ...debugFlagRoutes(options.setVerbosity) } : {}),
    },
    logger,
  );
}

function zRoutes(options: MetricsServerOptions): Routes {
  const { gates, flags, clock, startTime, random = Math.random } = options;
  // From here on by the monotonic clock: somebody may set the other one.
  const startedAt = clock.monotonic() - (clock.now() - startTime * 1000);
  const status = () => currentStatus(options, clock.monotonic() - startedAt);
  return {
    ...(gates.flagz ? { '/flagz': flagzHandler(flags, random) } : {}),
    ...(gates.statusz ? { '/statusz': statuszHandler(status, random) } : {}),
  };
}

function currentStatus({ startTime, version, gates }: MetricsServerOptions, uptimeMs: number): Status {
  return {
    startTime: startTime * 1000,
    uptimeSeconds: Math.max(0, Math.floor(uptimeMs / 1000)),
    goVersion: version.runtime,
    binaryVersion: version.binary,
    emulationVersion: version.binary,
    paths: ['/configz', ...(gates.flagz ? ['/flagz'] : []), '/healthz', '/metrics', '/proxyMode'],
  };
}
