import type { TypedObject } from './encoding.ts';

/** An error of the API: it becomes a response of kind Status. */
export class ApiFault extends Error {
  readonly code: number;
  readonly reason: string;

  constructor(code: number, reason: string, message: string) {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}

export function statusOf({ code, reason, message }: ApiFault): TypedObject {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
}
