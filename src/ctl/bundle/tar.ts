import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createGunzip, createGzip, gzipSync } from 'node:zlib';

const BLOCK = 512;

/**
 * One file of a tar.gz archive. The header needs the length, which is known only at the end of a stream; so the content
 * is compressed as a gzip member of its own, and only the compressed form is held in memory. Members in a row are one
 * gzip file. Returns the compressed bytes and the length of the content.
 */
export async function packFile(
  name: string,
  content: AsyncIterable<string> | Iterable<string>,
  time: number,
): Promise<{ readonly bytes: Buffer; readonly length: number }> {
  const gzip = createGzip();
  const compressed: Buffer[] = [];
  gzip.on('data', (piece: Buffer) => compressed.push(piece));
  const ended = new Promise<void>((resolve, reject) => gzip.on('end', resolve).on('error', reject));
  let length = 0;
  for await (const text of content) {
    const piece = Buffer.from(text);
    length += piece.length;
    if (!gzip.write(piece)) await new Promise((resolve) => gzip.once('drain', resolve));
  }
  gzip.end(Buffer.alloc((BLOCK - (length % BLOCK)) % BLOCK));
  await ended;
  return { bytes: Buffer.concat([gzipSync(header(name, length, time)), ...compressed]), length };
}

/** Two empty blocks end an archive. */
export function packEnd(): Buffer {
  return gzipSync(Buffer.alloc(2 * BLOCK));
}

/** A header in ustar format. */
function header(name: string, length: number, time: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0');
  block.write(name, 0, 100);
  block.write(`${octal(0o600, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100);
  block.write(`${octal(length, 11)}\0${octal(Math.floor(time / 1000), 11)}\0`, 124);
  // The checksum is made with blanks in its place.
  block.write(' '.repeat(8), 148);
  block.write('0', 156);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148);
  return block;
}

/** The contents of the wanted files of a tar.gz archive, by name. Rejects when the file is no such archive. */
export async function unpack(
  path: string,
  isWanted: (name: string) => boolean,
): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const gunzip = createGunzip();
  // Ends the loop below with the error of either stream.
  pipeline(createReadStream(path), gunzip, () => {});
  const pieces = new Pieces(gunzip);
  for (;;) {
    const block = await pieces.take(BLOCK);
    if (block.every((byte) => byte === 0)) return files;
    const { name, length } = readHeader(block);
    const content = await pieces.take(Math.ceil(length / BLOCK) * BLOCK);
    if (isWanted(name)) files.set(name, content.toString('utf8', 0, length));
  }
}

function readHeader(block: Buffer): { name: string; length: number } {
  const text = (from: number, to: number) => block.toString('utf8', from, to).replace(/\0.*$/s, '');
  const length = Number.parseInt(text(124, 136), 8);
  if (text(257, 262) !== 'ustar' || Number.isNaN(length)) throw new Error('it is not a tar archive');
  return { name: text(0, 100), length };
}

/** Hands out a stream of bytes in blocks of any size. */
class Pieces {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async take(length: number): Promise<Buffer> {
    const parts = [this.#rest];
    let have = this.#rest.length;
    while (have < length) {
      const { value, done } = await this.#source.next();
      if (done) throw new Error('it ends too early');
      parts.push(value);
      have += value.length;
    }
    const all = Buffer.concat(parts);
    this.#rest = all.subarray(length);
    return all.subarray(0, length);
  }
}
