import { API_VERSION } from '../inspect/api.ts';
import type { FlowEvent } from '../inspect/traffic-api.ts';

/** Far longer than any event. */
const maxLength = 1_000_000;

/** Reads an answer with an event per line; yields those that came together. Blank lines have no meaning. */
export async function* jsonLines(pieces: AsyncIterable<string>): AsyncGenerator<readonly FlowEvent[]> {
  let rest = '';
  for await (const piece of pieces) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxLength)
      throw new Error(`a line of the answer is longer than ${maxLength} characters`);
    const events = lines.filter((line) => line.trim() !== '').map(readEvent);
    if (events.length > 0) yield events;
  }
}

function readEvent(line: string): FlowEvent {
  let event: Partial<FlowEvent> | null;
  try {
    event = JSON.parse(line) as FlowEvent | null;
  } catch (error) {
    throw new Error(`a line of the answer is not JSON: ${excerpt(line)}`, { cause: error });
  }
  if (event?.apiVersion === API_VERSION && event.kind === 'FlowEvent') return event as FlowEvent;
  throw new Error(`a line of the answer is no FlowEvent of ${API_VERSION}: ${excerpt(line)}`);
}

function excerpt(line: string): string {
  return JSON.stringify(line.length > 100 ? `${line.slice(0, 100)}…` : line);
}
