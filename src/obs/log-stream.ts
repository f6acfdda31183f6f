import type { Clock, Timer } from '../lib/clock.ts';

/** Receives log text: a Writable, or anything with `write`. */
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
 * Writes without a buffer and ignores errors: when the reader is gone (EPIPE) or the disk is full, records are lost, but
 * the proxy goes on.
 */
export function directSink(stream: LogStream): LogSink {
  stream.on?.('error', () => {});
  return {
    write(record) {
      try {
        stream.write(record);
      } catch {
        // The record is lost, see above.
      }
    },
    flush() {},
    close() {},
  };
}

/** Buffers records up to a size and writes them at once, at the latest after `flushEvery` ms. */
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

  /** Flushes. Later records are written without buffering, so that none is lost while the process ends. */
  close(): void {
    this.#closed = true;
    this.flush();
  }
}
