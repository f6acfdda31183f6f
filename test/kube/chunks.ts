import fc from 'fast-check';

/** Cuts bytes at the given places, taken modulo the length; some pieces may be empty. */
export function cut(data: Buffer, places: readonly number[]): Buffer[] {
  const borders = places.map((place) => place % (data.length + 1)).sort((a, b) => a - b);
  return [...borders, data.length].map((end, i) => data.subarray(borders[i - 1] ?? 0, end));
}

export const cuts = fc.array(fc.nat(), { maxLength: 12 });

/** Each byte in a chunk of its own. */
export function singleBytes(data: Buffer): Buffer[] {
  return Array.from(data, (byte) => Buffer.of(byte));
}
