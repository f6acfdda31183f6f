/** The API server's answer is not in the expected form, or too large. */
export class StreamError extends Error {
  readonly code = 'KPT_STREAM_INVALID';
  override readonly name = 'StreamError';
}
