import { readFileSync } from 'node:fs';
import type { Locate } from './caller.ts';

/**
 * Maps offsets in a bundle to the sources, with the table that the build puts beside it (scripts/build.ts). Returns
 * undefined when the program runs from the sources. The table is read when the first record is written.
 */
export function bundleLocator(runningFile: string): Locate | undefined {
  if (!runningFile.endsWith('.js')) return undefined;
  let locate: Locate | undefined;
  return (offset) => {
    locate ??= readTable(runningFile.replace(/\.js$/, '.lines'));
    return locate(offset);
  };
}

/** The table has the number of lines, the offset at which each begins, the file and line that each is from, and the files. */
function readTable(path: string): Locate {
  let table: Buffer;
  try {
    table = readFileSync(path);
  } catch {
    // Without the table, log records show the bundle's own lines.
    return () => undefined;
  }
  const lines = table.readUInt32LE(0);
  const places = 4 + 4 * lines;
  const files = table.toString('utf8', places + 4 * lines).split('\n');
  return (offset) => {
    const line = lineAt(table, lines, offset);
    const file = files[table.readUInt16LE(places + 4 * line)];
    return file === undefined ? undefined : { file, line: table.readUInt16LE(places + 4 * line + 2) };
  };
}

/** The last line that begins at the offset or before. */
function lineAt(table: Buffer, lines: number, offset: number): number {
  let low = 0;
  let high = lines - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (table.readUInt32LE(4 + 4 * middle) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}
