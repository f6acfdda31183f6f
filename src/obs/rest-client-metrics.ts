import type { Registry } from './registry.ts';

const latencyBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
const sizeBuckets = [64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216];
const hour = 3600;
const day = 24 * hour;
/** Certificate ages: ten minutes up to about four years. */
const ageBuckets = [
  600,
  1800,
  hour,
  4 * hour,
  day,
  7 * day,
  30 * day,
  90 * day,
  180 * day,
  360 * day,
  1440 * day,
];

/** Declares the metrics of the Kubernetes API client. `host` is host and port of the server. */
export function createRestClientMetrics(registry: Registry) {
  const named = (name: string, help: string, labels: readonly string[] = []) =>
    ({ name: `rest_client_${name}`, help, labels, stability: 'ALPHA' }) as const;
  const perCall = ['verb', 'host'];
  const histogram = (name: string, help: string, buckets: readonly number[], labels = perCall) =>
    registry.histogram({ ...named(name, help, labels), buckets });
  const execPluginTtl = registry.gauge(
    named('exec_plugin_ttl_seconds', 'Life left of the plugin certificate'),
  );
  // Without a client certificate from an exec plugin.
  execPluginTtl.set(Number.POSITIVE_INFINITY);
  return {
    /** code is `<error>` without an answer. */
    requests: registry.counter(named('requests_total', 'API requests', ['code', 'method', 'host'])),
    retries: registry.counter(
      named('request_retries_total', 'API requests sent again', ['code', 'verb', 'host']),
    ),
    requestDuration: histogram('request_duration_seconds', 'Time an API request took', latencyBuckets),
    rateLimiterDuration: histogram(
      'rate_limiter_duration_seconds',
      'Time an API request waited for its turn',
      latencyBuckets,
    ),
    requestSize: histogram('request_size_bytes', 'Size of a request body', sizeBuckets),
    responseSize: histogram('response_size_bytes', 'Size of an answer body', sizeBuckets),
    transportCacheEntries: registry.gauge(named('transport_cache_entries', 'Connections settings in use')),
    transportCreateCalls: registry.counter(
      named('transport_create_calls_total', 'Connection settings made', ['result']),
    ),
    certificateRotationGcCalls: registry.counter(
      named('transport_cert_rotation_gc_calls_total', 'Certificate watchers given up'),
    ),
    execPluginTtl,
    execPluginCertificateAge: histogram(
      'exec_plugin_certificate_rotation_age',
      'Age in seconds of a plugin certificate when it was replaced',
      ageBuckets,
      [],
    ),
    execPluginCalls: registry.counter(
      named('exec_plugin_call_total', 'Runs of the credential plugin', ['code', 'call_status']),
    ),
  };
}
