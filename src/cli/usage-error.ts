/**
 * An invalid command line. The caller prints on stderr `warnings`, then (with `showUsage`) the usage text and an empty
 * line, then `Error: <message>`, and exits with 1.
 */
export class UsageError extends Error {
  readonly showUsage: boolean;
  /** Warnings about deprecated flags; only when every flag is valid. */
  readonly warnings: readonly string[];

  constructor(message: string, options: { showUsage: boolean; warnings?: readonly string[] }) {
    super(message);
    this.name = 'UsageError';
    this.showUsage = options.showUsage;
    this.warnings = options.warnings ?? [];
  }
}
