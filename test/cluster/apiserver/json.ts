import type { IncomingMessage } from 'node:http';
import { unsupportedMediaType } from './negotiation.ts';
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

/** The JSON body of a request. Rejects with `ApiFault` for another type or text. */
export async function readObject(request: IncomingMessage): Promise<RawObject> {
  const type = request.headers['content-type'] ?? 'application/json';
  if (!/^application\/([\w.-]+\+)?json\b/.test(type)) throw unsupportedMediaType;
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch {
    throw new ApiFault(400, 'BadRequest', 'the object provided is not JSON');
  }
}
