import { readFileSync } from 'node:fs';
import type { Caller } from './caller.ts';

/** Maps a position in the running file to a position in the sources. */
export type Locate = (caller: Caller) => Caller;

/**
 * Maps positions in a bundle to the sources, with the table that the build puts beside it (scripts/build.ts). Returns
 * undefined when the program runs from the sources. The table is read when the first record is written.
 */
export function bundleLocator(runningFile: string): Locate | undefined {
  if (!runningFile.endsWith('.js')) return undefined;
  let locate: Locate | undefined;
  return (caller) => {
    locate ??= readTable(runningFile.replace(/\.js$/, '.lines'));
    return locate(caller);
  };
}

function readTable(path: string): Locate {
  let table: Buffer;
  try {
    table = readFileSync(path);
  } catch {
    // Without the table, log records show the bundle's own lines.
    return (caller) => caller;
  }
  const lines = table.readUInt32LE(0);
  const files = table.toString('utf8', 4 + 4 * lines).split('\n');
  return (caller) => {
    if (caller.line > lines) return caller;
    const file = files[table.readUInt16LE(4 * caller.line)];
    return file === undefined ? caller : { file, line: table.readUInt16LE(4 * caller.line + 2) };
  };
}
