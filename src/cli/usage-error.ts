/**
 * A command line that cannot be obeyed. The caller prints `warnings`, then (with `showUsage`) the usage text and
 * an empty line, then `Error: <message>`, all on stderr, and exits with 1.
 */
export class UsageError extends Error {
  readonly showUsage: boolean;
  /** Notes about deprecated flags; present only when every flag parsed. */
  readonly warnings: readonly string[];

  constructor(message: string, options: { showUsage: boolean; warnings?: readonly string[] }) {
    super(message);
    this.name = 'UsageError';
    this.showUsage = options.showUsage;
    this.warnings = options.warnings ?? [];
  }
}
