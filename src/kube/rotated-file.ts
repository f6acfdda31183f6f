import { FileError, readText } from '../lib/file-error.ts';
import type { Logger } from '../obs/log.ts';

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
