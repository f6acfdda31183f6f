import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { Locate } from './caller.ts';

/**
 * Maps offsets in a bundle to the sources, with the table that the build puts beside it (scripts/build.ts). Returns
 * undefined when the program runs from the sources. The table is opened when the first record is written.
 */
export function bundleLocator(runningFile: string): Locate | undefined {
  if (!runningFile.endsWith('.js')) return undefined;
  let locate: Locate | undefined;
  return (offset) => {
    locate ??= openTable(runningFile.replace(/\.js$/, '.lines'));
    return locate(offset);
  };
}

/**
 * The table has the number of lines, the offset at which each begins, the file and line that each is from, and the files.
 * It stays in its file, which remains open: all of it in memory would be half a megabyte for a few numbers.
 */
function openTable(path: string): Locate {
  let table: TableFile;
  try {
    table = new TableFile(path);
  } catch {
    // Without the table, log records show the bundle's own lines.
    return () => undefined;
  }
  const located = new Map<number, ReturnType<Locate>>();
  return (offset) => {
    if (!located.has(offset)) located.set(offset, locateIn(table, offset));
    return located.get(offset);
  };
}

/** A table that cannot be read any more must not keep a record from being written. */
function locateIn(table: TableFile, offset: number): ReturnType<Locate> {
  try {
    return table.locate(offset);
  } catch {
    return undefined;
  }
}

class TableFile {
  readonly #fd: number;
  readonly #number = Buffer.alloc(4);
  readonly #lines: number;
  /** Where the files and lines begin. */
  readonly #places: number;
  readonly #files: readonly string[];

  /** Throws when there is no such file, or nothing in it. */
  constructor(path: string) {
    this.#fd = openSync(path, 'r');
    try {
      this.#lines = this.#read(0).readUInt32LE();
      this.#places = 4 + 4 * this.#lines;
      const names = Buffer.alloc(fstatSync(this.#fd).size - this.#places - 4 * this.#lines);
      readSync(this.#fd, names, 0, names.length, this.#places + 4 * this.#lines);
      this.#files = names.toString('utf8').split('\n');
    } catch (error) {
      closeSync(this.#fd);
      throw error;
    }
  }

  locate(offset: number): ReturnType<Locate> {
    const place = this.#read(this.#places + 4 * this.#lineAt(offset));
    const file = this.#files[place.readUInt16LE(0)];
    return file === undefined ? undefined : { file, line: place.readUInt16LE(2) };
  }

  /** The last line that begins at the offset or before. */
  #lineAt(offset: number): number {
    let low = 0;
    let high = this.#lines - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#read(4 + 4 * middle).readUInt32LE() <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The four bytes at a position. Throws when they are not there. */
  #read(position: number): Buffer {
    if (readSync(this.#fd, this.#number, 0, 4, position) < 4) throw new Error('the table is cut off');
    return this.#number;
  }
}
