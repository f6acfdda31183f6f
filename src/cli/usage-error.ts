/** An invalid command line. The caller prints `warnings`, the message and a hint on stderr, and exits with 1. */
export class UsageError extends Error {
  /** Warnings about deprecated flags; only when every flag is valid. */
  readonly warnings: readonly string[];

  constructor(message: string, warnings: readonly string[] = []) {
    super(message);
    this.name = 'UsageError';
    this.warnings = warnings;
  }
}
