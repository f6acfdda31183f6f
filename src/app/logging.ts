import type { LoggingConfig } from '../config/types.ts';
import { systemClock } from '../lib/clock.ts';
import { toMillis } from '../lib/duration.ts';
import { parseQuantity } from '../lib/quantity.ts';
import { bundleLocator } from '../obs/bundle-lines.ts';
import { createLogger, type LoggerOptions, type RootLogger } from '../obs/klog.ts';

const { pid, stdout, stderr } = process;
const locate = bundleLocator(import.meta.filename);

/** The logger until the configuration has been read. */
export function startLogger(): RootLogger {
  return createLogger({ format: 'text', verbosity: 0, clock: systemClock, pid, stdout, stderr, locate });
}

export function configuredLogger(logging: LoggingConfig): RootLogger {
  return createLogger(loggerOptions(logging));
}

export function loggerOptions(logging: LoggingConfig): LoggerOptions {
  const format = logging.format === 'json' ? 'json' : 'text';
  const { splitStream, infoBufferSize } = logging.options[format];
  return {
    format,
    verbosity: logging.verbosity,
    vmodule: logging.vmodule,
    splitStream,
    infoBufferSize: Number(parseQuantity(infoBufferSize).value),
    flushFrequency: toMillis(logging.flushFrequency),
    clock: systemClock,
    pid,
    stdout,
    stderr,
    locate,
  };
}
