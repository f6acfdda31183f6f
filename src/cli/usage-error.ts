/** An invalid command line. The caller prints `warnings`, the message and a hint on stderr, and exits with 1. */
export class UsageError extends Error {
  /** Warnings about deprecated flags; only when every flag is valid. */
  readonly warnings: readonly string[];
  /** What the user probably meant; undefined when there is nothing close. */
  readonly suggestion: string | undefined;

  constructor(
    message: string,
    details: { warnings?: readonly string[]; suggestion?: string | undefined } = {},
  ) {
    super(message);
    this.name = 'UsageError';
    this.warnings = details.warnings ?? [];
    this.suggestion = details.suggestion;
  }
}
