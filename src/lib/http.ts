/**
 * node:http without the cost of importing it. An `import` evaluates all its exports, among them lazy ones for WebSocket
 * that load Node's whole fetch implementation: 7 MB of memory and 10 ms that a proxy has no use for.
 */
export const http = process.getBuiltinModule('node:http');

/** A response that nothing was sent of. */
export interface Replier {
  writeHead(
    status: number,
    headers: Readonly<Record<string, string | number>>,
  ): { end(body: string | Uint8Array): unknown };
}

/** Sends a complete response with its length. */
export function reply(
  response: Replier,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array,
): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body);
}

export const jsonHeaders = {
  'Content-Type': 'application/json',
  'X-Content-Type-Options': 'nosniff',
} as const;
