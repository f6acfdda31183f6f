const golden = 0xdeadbeef;

/**
 * Bob Jenkins' lookup3 hash of some bytes, a number of 32 bits: what `jhash` is in nf_tables, on little-endian machines.
 */
export function jhash(bytes: Uint8Array, seed: number): number {
  const { length } = bytes;
  // Longer by a block, so that the last words can be read without looking at how many bytes are left.
  const padded = new DataView(new ArrayBuffer(length + 12));
  new Uint8Array(padded.buffer).set(bytes);
  const word = (at: number) => padded.getUint32(at, true);
  const start = (golden + length + seed) | 0;
  let [a, b, c] = [start, start, start];
  let at = 0;
  for (; length - at > 12; at += 12) {
    [a, b, c] = mixed((a + word(at)) | 0, (b + word(at + 4)) | 0, (c + word(at + 8)) | 0);
  }
  if (length === at) return c >>> 0;
  return finished((a + word(at)) | 0, (b + word(at + 4)) | 0, (c + word(at + 8)) | 0);
}

/** A number below `count` from a hash, as the kernel makes it: the hash as a fraction of all. */
export function scaled(hash: number, count: number): number {
  return Math.floor((hash / 2 ** 32) * count);
}

function rotated(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

function mixed(a: number, b: number, c: number): [number, number, number] {
  a = (a - c) ^ rotated(c, 4);
  c = (c + b) | 0;
  b = (b - a) ^ rotated(a, 6);
  a = (a + c) | 0;
  c = (c - b) ^ rotated(b, 8);
  b = (b + a) | 0;
  a = (a - c) ^ rotated(c, 16);
  c = (c + b) | 0;
  b = (b - a) ^ rotated(a, 19);
  a = (a + c) | 0;
  c = (c - b) ^ rotated(b, 4);
  b = (b + a) | 0;
  return [a, b, c];
}

function finished(a: number, b: number, c: number): number {
  c = (c ^ b) - rotated(b, 14);
  a = (a ^ c) - rotated(c, 11);
  b = (b ^ a) - rotated(a, 25);
  c = (c ^ b) - rotated(b, 16);
  a = (a ^ c) - rotated(c, 4);
  b = (b ^ a) - rotated(a, 14);
  c = (c ^ b) - rotated(b, 24);
  return c >>> 0;
}
