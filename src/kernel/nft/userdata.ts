import { hostLittleEndian } from '../../native/byte-order.ts';

/**
 * User data: bytes that the kernel stores with an object and never reads. nft keeps comments and set declarations
 * there as type-length-value records with one-byte type and length, integers in host order.
 */

export interface UserdataRecord {
  readonly type: number;
  readonly value: Uint8Array;
}

/** Longest comment that nft accepts, in bytes. */
export const maxCommentBytes = 128;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export function userdataU32(type: number, value: number): UserdataRecord {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, hostLittleEndian);
  return { type, value: bytes };
}

export function userdataText(type: number, text: string): UserdataRecord {
  const value = new Uint8Array(checkComment(text) + 1);
  encoder.encodeInto(text, value);
  return { type, value };
}

/** The length of a comment in bytes. Throws RangeError for a comment that nft does not accept. */
export function checkComment(text: string): number {
  const bytes = Buffer.byteLength(text);
  const hasNul = text.includes('\0');
  if (bytes <= maxCommentBytes && !hasNul) return bytes;
  const fault = hasNul ? 'has a NUL character' : `is longer than ${maxCommentBytes} bytes`;
  throw new RangeError(`comment ${JSON.stringify(text)} ${fault}`);
}

export function concatUserdata(list: readonly UserdataRecord[]): Uint8Array {
  const bytes = new Uint8Array(list.reduce((sum, record) => sum + 2 + record.value.length, 0));
  let at = 0;
  for (const { type, value } of list) {
    if (value.length > 255)
      throw new RangeError(`user data record ${type} has ${value.length} bytes, more than 255`);
    bytes[at] = type;
    bytes[at + 1] = value.length;
    bytes.set(value, at + 2);
    at += 2 + value.length;
  }
  return bytes;
}

/** The records of user data. Stops at bytes that are not a record: any program may have written them. */
export function* readUserdata(bytes: Uint8Array): Generator<UserdataRecord> {
  let at = 0;
  while (at + 2 <= bytes.length) {
    const type = bytes[at] ?? 0;
    const end = at + 2 + (bytes[at + 1] ?? 0);
    if (end > bytes.length) return;
    yield { type, value: bytes.subarray(at + 2, end) };
    at = end;
  }
}

/** The text of the first record of a type, without its NUL; undefined when there is none. */
export function readUserdataText(bytes: Uint8Array, type: number): string | undefined {
  for (const record of readUserdata(bytes)) {
    if (record.type !== type) continue;
    const end = record.value.indexOf(0);
    return decoder.decode(end < 0 ? record.value : record.value.subarray(0, end));
  }
  return undefined;
}

/** Cuts text to the longest prefix that fits a comment without splitting a character. */
export function cutComment(text: string): string {
  if (text.length * 3 <= maxCommentBytes) return text;
  const { read } = encoder.encodeInto(text, new Uint8Array(maxCommentBytes));
  return text.slice(0, read);
}
