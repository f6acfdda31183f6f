export type LogAttributes = Readonly<Record<string, unknown>>;

/**
 * Structured logging like klog's. `v(n)` returns a logger whose `info` writes only at verbosity n or higher; errors are
 * written at any verbosity.
 */
export interface Logger {
  info(message: string, attributes?: LogAttributes): void;
  error(error: unknown, message: string, attributes?: LogAttributes): void;
  v(level: number): Logger;
  /** Whether `info` writes anything; check it before building costly attributes. */
  readonly enabled: boolean;
  /** Returns this logger under a name; nested names are joined with a dot. */
  named(name: string): Logger;
}

export const silentLogger: Logger = {
  info() {},
  error() {},
  v: () => silentLogger,
  enabled: false,
  named: () => silentLogger,
};
