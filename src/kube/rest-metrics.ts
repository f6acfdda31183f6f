import type { Counter, Histogram } from '../obs/metrics.ts';

/** The metrics of a client. */
export interface RestMetrics {
  /** `rest_client_requests_total{code,method,host}`; code is `<error>` when no answer came. */
  readonly requests: Counter;
  /** `rest_client_request_retries_total{code,verb,host}` */
  readonly retries: Counter;
  /** `rest_client_request_duration_seconds{verb,host}`; watches are not observed. */
  readonly duration: Histogram;
  /** `rest_client_rate_limiter_duration_seconds{verb,host}` */
  readonly rateLimiterDuration: Histogram;
  /** `rest_client_request_size_bytes{verb,host}` */
  readonly requestSize: Histogram;
  /** `rest_client_response_size_bytes{verb,host}` */
  readonly responseSize: Histogram;
}

const counter: Counter = { inc() {} };
const histogram: Histogram = { observe() {} };

export const silentRestMetrics: RestMetrics = {
  requests: counter,
  retries: counter,
  duration: histogram,
  rateLimiterDuration: histogram,
  requestSize: histogram,
  responseSize: histogram,
};
