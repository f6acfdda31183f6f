import { once } from 'node:events';
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { createInterface, type Interface } from 'node:readline';
import { API_PATH } from '../../src/inspect/api.ts';
import type { FlowEvent } from '../../src/inspect/traffic-api.ts';
import { namespace } from '../contract/objects.ts';
import { METRICS_URL } from '../program/served-pages.ts';

/** Follows the flows of the story, and keeps every event. */
export class FlowWatcher {
  readonly events: FlowEvent[] = [];
  readonly #request: ClientRequest;
  readonly #lines: Interface;

  private constructor(request: ClientRequest, response: IncomingMessage) {
    this.#request = request;
    // Ending it from this side is an error of the connection.
    for (const part of [request, response]) part.on('error', () => {});
    this.#lines = createInterface({ input: response });
    this.#lines.on('line', (line) => this.events.push(JSON.parse(line) as FlowEvent));
  }

  /** Resolves when the program watches. */
  static async open(): Promise<FlowWatcher> {
    const address = new URL(`${API_PATH}flows?watch=true&namespace=${namespace}`, METRICS_URL);
    const request = get(address, { agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return new FlowWatcher(request, response);
  }

  close(): void {
    this.#lines.close();
    this.#request.destroy();
  }
}
