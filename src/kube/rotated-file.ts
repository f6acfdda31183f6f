import { FileError, readText } from '../lib/file-error.ts';
import type { Logger } from '../obs/log.ts';

/**
 * A file that may be replaced at run time, such as a token or a certificate. It is read at every use; when that fails,
 * its last content is used and the error is logged once.
 */
export class RotatedFile {
  readonly path: string;
  readonly #logger: Logger;
  #last: string | undefined;
  #reported: string | undefined;

  constructor(path: string, logger: Logger) {
    this.path = path;
    this.#logger = logger;
  }

  async read(): Promise<string> {
    try {
      this.#last = await readText(this.path);
      this.#reported = undefined;
      return this.#last;
    } catch (error) {
      if (this.#last === undefined || !(error instanceof FileError)) throw error;
      if (this.#reported !== error.message) {
        this.#reported = error.message;
        this.#logger.error(error, 'Failed to read a file again; using its last content', {
          path: this.path,
        });
      }
      return this.#last;
    }
  }
}
