import type { Logger } from '../obs/log.ts';

/** Errors become warnings on stderr; everything else that would be logged is left out. */
export function warningLogger(write: (text: string) => unknown): Logger {
  const logger: Logger = {
    info() {},
    error(error, message, attributes = {}) {
      const cause = error instanceof Error ? error.message : error;
      const details = [cause, ...Object.values(attributes)].filter((part) => part !== undefined);
      write(`Warning: ${[message, ...details.map(String)].join(': ')}\n`);
    },
    v: () => ({ ...logger, error() {} }),
    enabled: false,
    named: () => logger,
  };
  return logger;
}
