import type { TimeSlice } from '../lib/time-slice.ts';
import type { AnswerReader } from './encoding.ts';

/**
 * Reads an answer to its end and calls `take` for each part as it arrives, in time slices. Waits for a promise that
 * `take` returns.
 */
export async function readAnswer<Part, Rest>(
  chunks: AsyncIterable<Uint8Array>,
  reader: AnswerReader<Part, Rest>,
  timeSlice: TimeSlice,
  take: (part: Part) => Promise<void> | undefined,
): Promise<Rest> {
  for await (const chunk of chunks) {
    for (const part of reader.push(chunk)) {
      const taken = take(part);
      if (taken !== undefined) await taken;
      if (timeSlice.isSpent) await timeSlice.yield();
    }
  }
  return reader.end();
}
