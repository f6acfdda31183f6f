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
  /** The server's words on a refusal. */
  readonly message?: string;
}

/** Brings an event to the API server; rejects only when there was no answer, which is worth another try. */
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
