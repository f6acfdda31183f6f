import type { LogAttributes, Logger } from '../src/obs/log.ts';

/** Records log calls, for tests that check them. */
export class LogRecorder implements Logger {
  readonly lines: { message: string; error?: string; attributes: LogAttributes | undefined }[] = [];
  readonly enabled = true;

  info(message: string, attributes?: LogAttributes): void {
    this.lines.push({ message, attributes });
  }

  error(error: unknown, message: string, attributes?: LogAttributes): void {
    this.lines.push({ message, error: String(error), attributes });
  }

  v(): Logger {
    return this;
  }

  named(): Logger {
    return this;
  }
}
