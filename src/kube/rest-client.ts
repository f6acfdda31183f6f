/** One call to the API server. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute path below the server's base URL, already escaped: `/api/v1/services`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. Its content type is `application/json` unless `headers` says otherwise. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Time limit for the whole call (`request`) or until the answer begins (`stream`); 30 s when absent. */
  readonly timeoutMs?: number;
}

export interface ApiResponse {
  readonly status: number;
  /** Parsed JSON; undefined when the answer has no body. */
  readonly body: unknown;
}

/** A call whose answer is read piece by piece. */
export interface StreamRequest extends ApiRequest {
  /**
   * The stream fails with `IdleError` when nothing arrives for this long: the other end may be gone without a
   * word. Asked before each wait, so that patience may change as the stream goes on.
   */
  readonly idleMs: () => number;
  /** Watches are long and few, so they do not count against the client's QPS. */
  readonly unthrottled?: boolean;
}

/**
 * Access to one API server. Every failure is an `ApiError` (the server refused: status, reason, message), a
 * `TransportError` (no usable answer) or the reason of the request's own abort signal.
 */
export interface RestClient {
  /** Sends, waits for the whole answer and parses it. Only 2xx answers resolve. */
  request(request: ApiRequest): Promise<ApiResponse>;
  /** Resolves when a 2xx answer begins; yields its body, decompressed. Leaving the loop closes the connection. */
  stream(request: StreamRequest): Promise<AsyncIterable<Uint8Array>>;
  /** Aborts what is under way and closes all connections. */
  close(): void;
}
