/** Values a log record can carry. */
export type LogAttributes = Readonly<Record<string, unknown>>;

/**
 * Structured logging in klog's manner. `v(n)` gives a logger that writes only at verbosity n or higher;
 * errors are written at any verbosity.
 */
export interface Logger {
  info(message: string, attributes?: LogAttributes): void;
  error(error: unknown, message: string, attributes?: LogAttributes): void;
  v(level: number): Logger;
  /** Whether `info` of this logger writes anything: guards attributes that are costly to build. */
  readonly enabled: boolean;
  /** The same logger under a name; names nest with a dot. */
  named(name: string): Logger;
}

export const silentLogger: Logger = {
  info() {},
  error() {},
  v: () => silentLogger,
  enabled: false,
  named: () => silentLogger,
};
