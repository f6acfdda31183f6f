import { readFile as readFileLater, stat as statLater } from 'node:fs';
import { getSystemErrorMessage, promisify } from 'node:util';
import { hasCode, messageOf } from './thrown.ts';

// Not those of node:fs/promises, which every start would have to load.
const readFile = promisify(readFileLater);
export const stat = promisify(statLater);

/** Texts where libuv's differ from those that operators know from other programs. */
const texts: Readonly<Record<string, string>> = {
  EISDIR: 'is a directory',
  ELOOP: 'too many levels of symbolic links',
};

/** A file error in the form operators know: `open /path: no such file or directory`. */
export class FileError extends Error {
  readonly code = 'KPT_FILE';
  override readonly name = 'FileError';

  constructor(operation: string, path: string, cause: unknown) {
    super(`${operation} ${path}: ${textOf(cause)}`, { cause });
  }
}

function textOf(cause: unknown): string {
  const known = Object.entries(texts).find(([code]) => hasCode(cause, code));
  if (known) return known[1];
  const errno = cause instanceof Error && 'errno' in cause ? cause.errno : undefined;
  return typeof errno === 'number' ? getSystemErrorMessage(errno) : messageOf(cause);
}

/** Reads a file as UTF-8. Rejects with a `FileError`. */
export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    // A directory can be opened; it is the reading that fails.
    throw new FileError(hasCode(error, 'EISDIR') ? 'read' : 'open', path, error);
  }
}
