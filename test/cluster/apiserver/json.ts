import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiFault } from './status.ts';
import type { RawObject } from './store.ts';

/** JSON merge patch. */
export function mergePatch(onto: unknown, patch: unknown): unknown {
  if (!isMap(patch)) return patch;
  const merged: Record<string, unknown> = isMap(onto) ? { ...onto } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = mergePatch(merged[key], value);
  }
  return merged;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The JSON body of a request. */
export async function readObject(request: IncomingMessage): Promise<RawObject> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch {
    throw new ApiFault(400, 'BadRequest', 'the object provided is not JSON');
  }
}

export function sendJson(response: ServerResponse, code: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(code, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}
