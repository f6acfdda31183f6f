import { isFields } from './fields.ts';

const temporaryStatuses: readonly number[] = [401, 403, 429, 502, 503, 504];

/** A longer wait would leave the node's rules out of date for as long; a proxy in between may ask for a day. */
const maxRetryAfterSeconds = 60;

/** The API server answered with an error status. */
export class ApiError extends Error {
  readonly code = 'KPT_API_STATUS';
  override readonly name = 'ApiError';
  /** HTTP status code, or the code of a Status object received inside a watch. */
  readonly status: number;
  /** Kubernetes' machine-readable reason (`NotFound`, `Expired`, …); empty when the server gave none. */
  readonly reason: string;
  /** What the server asked for in `Retry-After` or in the Status details, at most a minute. */
  readonly retryAfterSeconds: number | undefined;

  constructor(status: number, reason: string, message: string, retryAfterSeconds?: number) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfterSeconds =
      retryAfterSeconds === undefined ? undefined : Math.min(retryAfterSeconds, maxRetryAfterSeconds);
  }

  /** The requested resource version or continue token is too old: a new list is needed. */
  get expired(): boolean {
    return this.status === 410 || this.reason === 'Expired' || this.reason === 'Gone';
  }

  /**
   * The same request may succeed later: the server is unavailable, busy, or cannot authenticate or authorise clients
   * yet (after a start it refuses all clients until it has read the roles).
   */
  get temporary(): boolean {
    return temporaryStatuses.includes(this.status) && !this.isBehind;
  }

  /**
   * The server has not reached a resource version. This comes as a time-out. A version of ours it may never reach; that of
   * a list is the newest in etcd, which a busy server reaches late.
   */
  get isBehind(): boolean {
    return /too large resource version/i.test(this.message);
  }
}

/** There was no usable answer: connection refused or cut, TLS failure, time-out, not HTTP. Retry always. */
export class TransportError extends Error {
  readonly code = 'KPT_API_TRANSPORT';
  override readonly name: string = 'TransportError';
}

/** No connection could be made, so the server has not seen the request. */
export class ConnectError extends TransportError {
  override readonly name = 'ConnectError';
}

/** The connection is open, but no data arrives. */
export class IdleError extends TransportError {
  override readonly name = 'IdleError';
}

/** Converts a failure below HTTP: to the reason of the abort if there was one, else to a `TransportError`. */
export function transportErrorOf(error: unknown, signal?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason;
  if (error instanceof TransportError) return error;
  // All addresses failed: the messages are in the parts.
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const message = first instanceof Error ? plainMessage(first) : String(first);
  return new (isOfConnecting(first) ? ConnectError : TransportError)(message, { cause: error });
}

function isOfConnecting(error: unknown): boolean {
  if (!(error instanceof Error && 'syscall' in error)) return false;
  return error.syscall === 'connect' || error.syscall === 'getaddrinfo';
}

const unknownAuthority: readonly string[] = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
];

/** Replaces messages of Node that an operator would not understand. */
function plainMessage(error: Error): string {
  const code = 'code' in error ? String(error.code) : '';
  if (unknownAuthority.includes(code)) return "the server's certificate is signed by an unknown authority";
  // Node's message when the connection ends inside the answer.
  if (error.message === 'aborted') return 'the connection was cut before the answer was complete';
  return error.message;
}

/** Builds the error of an answer from its body: a Kubernetes Status or, from a proxy, anything. */
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
