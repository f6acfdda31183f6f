import type { HttpResponse } from '../http/response.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { reportSliceMs, TimeSlice } from '../lib/time-slice.ts';

/** Characters per write. */
const pieceLength = 64 * 1024;

/**
 * Sends an object whose last field, `items`, may be long: in pieces, without blocking the event loop, and no faster than
 * the client reads. Stops when the client disconnects.
 */
export async function sendList(
  response: HttpResponse,
  head: object,
  items: Iterable<object>,
  clock: Clock,
): Promise<void> {
  const timeSlice = new TimeSlice(clock, reportSliceMs);
  let piece = `${JSON.stringify(head).slice(0, -1)},"items":[`;
  let separator = '\n';
  for (const item of items) {
    piece += separator + JSON.stringify(item);
    separator = ',\n';
    if (piece.length >= pieceLength) {
      if (!(await write(response, piece))) return;
      piece = '';
    }
    if (timeSlice.isSpent) await timeSlice.yield();
  }
  response.end(`${piece}]}\n`);
}

/** Resolves when there is room for more; to false when the client has disconnected. */
function write(response: HttpResponse, piece: string): boolean | Promise<boolean> {
  if (response.destroyed) return false;
  if (response.write(piece)) return true;
  return new Promise((resolve) => {
    const settle = () => {
      response.off('drain', settle).off('close', settle);
      resolve(!response.destroyed);
    };
    response.on('drain', settle).on('close', settle);
  });
}

/**
 * As `sendList`, for items that come some at a time; `produce` waits until there is room for more. Rejects when `produce`
 * fails before anything was sent: the caller can still answer with an error.
 */
export async function sendBatches(
  response: HttpResponse,
  head: object,
  produce: (send: (items: readonly object[]) => Promise<void>) => Promise<void>,
): Promise<void> {
  let piece = `${JSON.stringify(head).slice(0, -1)},"items":[`;
  let separator = '\n';
  const flush = async () => {
    const some = piece;
    piece = '';
    if (!(await write(response, some))) throw new Error('the client disconnected');
  };
  try {
    await produce(async (items) => {
      for (const item of items) {
        piece += separator + JSON.stringify(item);
        separator = ',\n';
      }
      if (piece.length >= pieceLength) await flush();
    });
    response.end(`${piece}]}\n`);
  } catch (error) {
    if (!response.headersSent) throw error;
    // The answer has begun: the client sees that it is cut off.
    response.destroy();
  }
}

/** Bytes that wait for a slow reader, before lines are left out. */
const maxWaiting = 4 << 20;
/** A write costs as much as many lines, so it waits for more of them: for less time than a person notices. */
const collectMs = 10;

/**
 * Sends one object per line, as they come. Lines that come within some milliseconds are sent together. A reader that is
 * too slow misses some, and is told how many.
 */
export class LineStream {
  readonly #response: HttpResponse;
  readonly #lostLine: (count: number) => object;
  readonly #clock: Clock;
  #flushing: Timer | undefined;
  #piece = '';
  #lost = 0;

  constructor(response: HttpResponse, lostLine: (count: number) => object, clock: Clock) {
    this.#response = response;
    this.#lostLine = lostLine;
    this.#clock = clock;
    response.on('drain', () => this.#report());
    response.on('close', () => this.#flushing?.cancel());
  }

  write(line: object): void {
    const response = this.#response;
    if (response.destroyed || response.writableEnded) return;
    if (this.#lost > 0 || response.writableLength + this.#piece.length > maxWaiting) {
      this.#lost++;
      return;
    }
    if (this.#piece === '') this.#flushing = this.#clock.setTimeout(() => this.#flush(), collectMs);
    this.#piece += `${JSON.stringify(line)}\n`;
    if (this.#piece.length >= pieceLength) this.#flush();
  }

  /** No line follows. */
  end(): void {
    this.#flush();
    this.#response.end();
  }

  #flush(): void {
    this.#flushing?.cancel();
    const piece = this.#piece;
    this.#piece = '';
    if (piece !== '' && !this.#response.destroyed) this.#response.write(piece);
  }

  #report(): void {
    if (this.#lost === 0) return;
    const count = this.#lost;
    this.#lost = 0;
    this.write(this.#lostLine(count));
  }
}
