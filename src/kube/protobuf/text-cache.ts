import type { Intern } from '../../lib/intern.ts';

/** A power of two. */
const slots = 4096;
const maxLength = 256;

/**
 * Remembers interned texts by their bytes, so that one that repeats is not made again. Each slot of the table holds the
 * last text whose hash led there, so its size is bounded.
 */
export class TextCache {
  readonly #texts = Array<string>(slots).fill('');

  /** The interned text of the bytes from `start` to `end`; undefined if they are not UTF-8. */
  interned(bytes: Buffer, start: number, end: number, intern: Intern): string | undefined {
    const slot = hash(bytes, start, end) & (slots - 1);
    const known = this.#texts[slot] ?? '';
    if (isSame(known, bytes, start, end)) return known;
    const text = readText(bytes, start, end);
    if (text === undefined) return undefined;
    const shared = intern(text);
    // ASCII only, where each byte is one character: otherwise the bytes of one text may be the characters of another.
    if (text.length === end - start && text.length <= maxLength) this.#texts[slot] = shared;
    return shared;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of the bytes from `start` to `end`; undefined if they are not UTF-8. */
export function readText(bytes: Buffer, start: number, end: number): string | undefined {
  if (isAscii(bytes, start, end)) return bytes.toString('latin1', start, end);
  try {
    return utf8.decode(bytes.subarray(start, end));
  } catch {
    return undefined;
  }
}

export function isAscii(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if ((bytes[i] ?? 0) > 0x7f) return false;
  return true;
}

/** FNV-1a, 32 bits, of some 16 bytes at most: that tells names apart, and long texts cost no more than short ones. */
function hash(bytes: Uint8Array, start: number, end: number): number {
  const step = 1 + ((end - start) >> 4);
  let value = end - start;
  for (let i = end - 1; i >= start; i -= step) value = Math.imul(value ^ (bytes[i] ?? 0), 0x01000193);
  return value ^ (value >>> 16);
}

function isSame(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}
