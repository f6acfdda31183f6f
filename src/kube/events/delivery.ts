import type { Clock } from '../../lib/clock.ts';
import { sleep } from '../../lib/sleep.ts';
import { ApiError } from '../api-error.ts';
import type { RestClient } from '../rest-client.ts';

/** One write of an event. */
export interface EventRequest {
  readonly method: 'POST' | 'PATCH';
  readonly path: string;
  /** Sent as JSON. */
  readonly body: unknown;
  readonly contentType: string;
}

export interface EventAnswer {
  /** HTTP status, refusals included. */
  readonly status: number;
  /** The server's message when it refused. */
  readonly message?: string;
}

/** Sends an event to the API server; rejects only when there was no answer. */
export type SendEvent = (request: EventRequest) => Promise<EventAnswer>;

/** Sends events over the program's API client. */
export function sendOver(client: RestClient): SendEvent {
  return async ({ method, path, body, contentType }) => {
    try {
      const headers = { 'Content-Type': contentType };
      return { status: (await client.request({ method, path, body, headers })).status };
    } catch (error) {
      if (error instanceof ApiError) return { status: error.status, message: error.message };
      throw error;
    }
  };
}

const maxTries = 12;
const retryMs = 10_000;
const retryJitter = 0.25;

export interface DeliveryOptions {
  readonly send: SendEvent;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Sends one request, and repeats it while the server does not answer. */
export class Delivery {
  readonly #options: DeliveryOptions;
  #closed = false;
  #hurry = new AbortController();

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Resolves with the server's answer; rejects with the last error when every try failed. */
  async deliver(request: EventRequest): Promise<EventAnswer> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#options.send(request);
      } catch (error) {
        if (tries < maxTries && !this.#closed) await this.#pause();
        if (tries >= maxTries || this.#closed) throw error;
      }
    }
  }

  /** Ends the pause before the next try. */
  hurry(): void {
    this.#hurry.abort();
    this.#hurry = new AbortController();
  }

  /** No further tries. */
  close(): void {
    this.#closed = true;
    this.hurry();
  }

  #pause(): Promise<void> {
    const { clock, random } = this.#options;
    return sleep(clock, retryMs * (1 + random() * retryJitter), this.#hurry.signal);
  }
}
