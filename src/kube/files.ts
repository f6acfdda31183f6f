import { readFile } from 'node:fs/promises';
import { hasCode, messageOf } from '../lib/thrown.ts';
import type { Logger } from '../obs/log.ts';

const texts: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EISDIR: 'is a directory',
  ENOTDIR: 'not a directory',
  ELOOP: 'too many levels of symbolic links',
};

/** A file error in the form operators know: `open /path: no such file or directory`. */
export class FileError extends Error {
  readonly code = 'KPT_FILE';
  override readonly name = 'FileError';

  constructor(operation: string, path: string, cause: unknown) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
    const text = texts[code] ?? messageOf(cause);
    super(`${operation} ${path}: ${text}`, { cause });
  }
}

export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    // A directory can be opened; it is the reading that fails.
    const isDirectory = hasCode(error, 'EISDIR');
    throw new FileError(isDirectory ? 'read' : 'open', path, error);
  }
}

/**
 * A file that somebody replaces while we run, such as a token or a certificate. It is read at every use, which for
 * the few calls a client makes costs nothing, and when it cannot be read what it last held stays good.
 */
export class RotatedFile {
  readonly path: string;
  readonly #logger: Logger;
  #last: string | undefined;
  #complaint: string | undefined;

  constructor(path: string, logger: Logger) {
    this.path = path;
    this.#logger = logger;
  }

  async read(): Promise<string> {
    try {
      this.#last = await readText(this.path);
      this.#complaint = undefined;
      return this.#last;
    } catch (error) {
      if (this.#last === undefined || !(error instanceof FileError)) throw error;
      if (this.#complaint !== error.message) {
        this.#complaint = error.message;
        this.#logger.error(error, 'Failed to read a file again; what it last held is used', {
          path: this.path,
        });
      }
      return this.#last;
    }
  }
}
