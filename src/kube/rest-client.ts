/** One call to the API server. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute path below the server's base URL, already escaped: `/api/v1/services`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON, with content type `application/json` unless `headers` has another. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Time limit for the whole call (`request`) or until the answer begins (`stream`); 30 s when absent. */
  readonly timeoutMs?: number;
}

export interface ApiResponse {
  readonly status: number;
  /** Parsed JSON; undefined when the answer has no body or is not JSON. Writers need only the status. */
  readonly body: unknown;
}

/** A call whose answer is read in pieces. */
export interface StreamRequest extends ApiRequest {
  /**
   * The stream fails with `IdleError` when no data arrives for this long. Called before each wait, so that it may
   * change.
   */
  readonly idleMs: () => number;
  /** Not counted against the client's QPS; for watches, which are few and long. */
  readonly unthrottled?: boolean;
}

/** The decompressed body of an answer. Leaving the loop closes the connection. */
export interface AnswerBody extends AsyncIterable<Uint8Array> {
  /** The Content-Type of the answer; empty when it has none. */
  readonly contentType: string;
}

/**
 * Access to one API server. Every failure is an `ApiError` (the server refused: status, reason, message), a
 * `TransportError` (no usable answer) or the reason of the request's own abort signal.
 */
export interface RestClient {
  /** Sends a request and parses the whole answer. Rejects unless the status is 2xx. */
  request(request: ApiRequest): Promise<ApiResponse>;
  /** Resolves with the body when a 2xx answer begins. */
  stream(request: StreamRequest): Promise<AnswerBody>;
  /** Aborts all requests and closes all connections. */
  close(): void;
}
