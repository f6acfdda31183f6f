import type { Clock, Timer } from '../lib/clock.ts';

/** Where log text goes: a Writable, or anything with `write`. */
export interface LogStream {
  write(text: string): unknown;
  on?(event: 'error', listener: (error: Error) => void): unknown;
}

/** One destination of log records. */
export interface LogSink {
  write(record: string): void;
  flush(): void;
  close(): void;
}

/**
 * Writes straight through. A reader that went away (EPIPE) or a full disk loses records and must not take the
 * proxy down with it; there is no other place to report it to.
 */
export function directSink(stream: LogStream): LogSink {
  stream.on?.('error', () => {});
  return {
    write(record) {
      try {
        stream.write(record);
      } catch {
        // See above: the record is lost, the caller goes on.
      }
    },
    flush() {},
    close() {},
  };
}

/** Collects records up to a size and passes them on in one write, at the latest after `flushEvery` ms. */
export class BufferedSink implements LogSink {
  readonly #sink: LogSink;
  readonly #size: number;
  readonly #flushEvery: number;
  readonly #clock: Clock;
  #pending = '';
  #timer: Timer | undefined;
  #closed = false;

  constructor(sink: LogSink, options: { size: number; flushEvery: number; clock: Clock }) {
    this.#sink = sink;
    this.#size = options.size;
    this.#flushEvery = options.flushEvery;
    this.#clock = options.clock;
  }

  write(record: string): void {
    this.#pending += record;
    if (this.#closed || this.#pending.length >= this.#size) {
      this.flush();
    } else {
      this.#timer ??= this.#clock.setTimeout(() => this.flush(), this.#flushEvery);
    }
  }

  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#pending === '') return;
    const text = this.#pending;
    this.#pending = '';
    this.#sink.write(text);
  }

  /** Later records are written at once, so that nothing said while the process ends is lost. */
  close(): void {
    this.#closed = true;
    this.flush();
  }
}
