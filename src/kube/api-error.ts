import { isFields } from './fields.ts';

const temporaryStatuses: readonly number[] = [401, 403, 429, 502, 503, 504];

/** The API server answered, and the answer is a refusal. */
export class ApiError extends Error {
  readonly code = 'KPT_API_STATUS';
  override readonly name = 'ApiError';
  /** HTTP status code, or the code of a Status object received inside a watch. */
  readonly status: number;
  /** Kubernetes' machine-readable reason (`NotFound`, `Expired`, …); empty when the server gave none. */
  readonly reason: string;
  /** What the server asked for in `Retry-After` or in the Status details. */
  readonly retryAfterSeconds: number | undefined;

  constructor(status: number, reason: string, message: string, retryAfterSeconds?: number) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  /** The resource version or continue token asked for is too old: only a fresh list helps. */
  get expired(): boolean {
    return this.status === 410 || this.reason === 'Expired' || this.reason === 'Gone';
  }

  /**
   * The server is away, busy, or does not know who asks or what they may do, and said nothing about what was asked:
   * the same request may succeed later. One that has just started refuses everybody until it has read the roles. A
   * version that the server has not reached comes as a time-out too, but may never be reached.
   */
  get temporary(): boolean {
    return temporaryStatuses.includes(this.status) && !/too large resource version/i.test(this.message);
  }
}

/** No usable answer came: connection refused or cut, TLS failure, time-out, not HTTP. Always worth a retry. */
export class TransportError extends Error {
  readonly code = 'KPT_API_TRANSPORT';
  override readonly name: string = 'TransportError';
}

/** The connection is there but nothing comes through it. */
export class IdleError extends TransportError {
  override readonly name = 'IdleError';
}

/** Any failure below HTTP as what callers expect: the reason of an abort, or a `TransportError`. */
export function transportErrorOf(error: unknown, signal?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason;
  if (error instanceof TransportError) return error;
  // Several addresses tried in vain: the message is in the parts.
  const first = error instanceof AggregateError ? error.errors[0] : error;
  return new TransportError(first instanceof Error ? plainMessage(first) : String(first), { cause: error });
}

const unknownAuthority: readonly string[] = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
];

/** Says in an operator's words what Node says in those of a programmer. */
function plainMessage(error: Error): string {
  const code = 'code' in error ? String(error.code) : '';
  if (unknownAuthority.includes(code)) return "the server's certificate is signed by an unknown authority";
  // That is all Node says of an answer that breaks off.
  if (error.message === 'aborted') return 'the connection was cut before the answer was complete';
  return error.message;
}

/** Builds the error for a refusal from its body, which is a Kubernetes Status or, from a proxy, anything. */
export function apiErrorOf(status: number, body: unknown, retryAfterSeconds?: number): ApiError {
  if (!isFields(body) || body.kind !== 'Status') {
    const text = typeof body === 'string' && body.trim() !== '' ? `: ${body.trim().slice(0, 200)}` : '';
    return new ApiError(status, '', `the server answered with status ${status}${text}`, retryAfterSeconds);
  }
  const code = typeof body.code === 'number' && status < 400 ? body.code : status;
  const reason = typeof body.reason === 'string' ? body.reason : '';
  const message =
    typeof body.message === 'string' && body.message !== '' ? body.message : `status ${code} ${reason}`;
  const details = isFields(body.details) ? body.details.retryAfterSeconds : undefined;
  const wait = retryAfterSeconds ?? (typeof details === 'number' && details > 0 ? details : undefined);
  return new ApiError(code, reason, message, wait);
}
