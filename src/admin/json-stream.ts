import type { ServerResponse } from 'node:http';
import type { Clock } from '../lib/clock.ts';
import { TimeSlice } from '../lib/time-slice.ts';

/** Characters per write. */
const pieceLength = 64 * 1024;

/**
 * Sends an object whose last field, `items`, may be long: in pieces, without blocking the event loop, and no faster than
 * the client reads. Stops when the client disconnects.
 */
export async function sendList(
  response: ServerResponse,
  head: object,
  items: Iterable<object>,
  clock: Clock,
): Promise<void> {
  const timeSlice = new TimeSlice(clock);
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
function write(response: ServerResponse, piece: string): boolean | Promise<boolean> {
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
