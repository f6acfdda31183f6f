import { readFileSync } from 'node:fs';
import type { Caller } from './caller.ts';

/** Leads from a place in the running file to the place in the sources that it was made from. */
export type Locate = (caller: Caller) => Caller;

/**
 * The way back to the sources for a bundle, from the table that the build puts beside it (scripts/build.ts). Undefined
 * where there is none, as when running from the sources themselves. It is read when the first record is written.
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
    // Without the table the bundle's own lines are shown; no record is worth failing for.
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
