import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { hasCode, messageOf } from '../../lib/thrown.ts';
import { type ContentOptions, type ManifestContent, readContent } from './content.ts';
import type { ManifestProblem } from './documents.ts';
import { ManifestError } from './documents.ts';

/** The longest manifest; a JavaScript string can hold about twice as much. */
const maxBytes = 256 * 1024 * 1024;

interface FileState {
  /** Device, inode, size and times: changes with the file. */
  readonly signature: string;
  readonly digest: string;
  /** The content in use; undefined if the file could never be read. */
  readonly content: ManifestContent | undefined;
  readonly problems: readonly ManifestProblem[];
}

/** The manifest files of a directory, or a single file: their content in use and their problems. */
export class ManifestFiles {
  readonly #path: string;
  readonly #options: ContentOptions;
  #files: ReadonlyMap<string, FileState> = new Map();
  #pathProblem: ManifestProblem | undefined;
  /** The directory of the files. */
  #directory = '';

  constructor(path: string, options: ContentOptions) {
    this.#path = path;
    this.#options = options;
  }

  /**
   * Reads changed files; returns whether anything changed. A file that is not YAML keeps its last content; so do all
   * files when the path is gone. Of a file with invalid objects, the others are in use. `thorough` reads every file, also those with an unchanged signature.
   */
  async refresh(thorough: boolean): Promise<boolean> {
    const before = this.#files;
    const problemBefore = this.#pathProblem?.message;
    try {
      this.#files = await this.#readAll(thorough);
      this.#pathProblem = undefined;
    } catch (error) {
      this.#pathProblem = { file: this.#path, message: messageOf(error) };
    }
    return this.#pathProblem?.message !== problemBefore || !sameFiles(before, this.#files);
  }

  /** Contents in use, sorted by file name. */
  contents(): (readonly [file: string, content: ManifestContent])[] {
    return [...this.#files].flatMap(([file, { content }]) => (content ? [[file, content] as const] : []));
  }

  /** Why the path itself cannot be read. */
  get pathProblem(): ManifestProblem | undefined {
    return this.#pathProblem;
  }

  problems(): ManifestProblem[] {
    const ofFiles = [...this.#files.values()].flatMap(({ problems }) => problems);
    return this.#pathProblem ? [this.#pathProblem, ...ofFiles] : ofFiles;
  }

  /** The path of the file that a problem is about. */
  pathOf({ file }: ManifestProblem): string {
    return file === this.#path ? file : join(this.#directory, file);
  }

  async #readAll(thorough: boolean): Promise<Map<string, FileState>> {
    const files = new Map<string, FileState>();
    const isDirectory = (await stat(this.#path)).isDirectory();
    const directory = isDirectory ? this.#path : dirname(this.#path);
    this.#directory = directory;
    const names = isDirectory
      ? (await readdir(directory)).filter(isManifestName).sort()
      : [basename(this.#path)];
    for (const name of names) {
      const state = await this.#read(name, join(directory, name), thorough);
      if (state) files.set(name, state);
    }
    return files;
  }

  /** Returns undefined when the file is gone. */
  async #read(name: string, path: string, thorough: boolean): Promise<FileState | undefined> {
    const before = this.#files.get(name);
    let signature = '';
    try {
      // Before the content, so that a write in between is noticed at the next read.
      const stats = await stat(path, { bigint: true });
      signature = signatureOf(stats);
      if (before && !thorough && before.signature === signature) return before;
      if (!stats.isFile()) throw new ManifestError('not a regular file');
      if (stats.size > maxBytes) throw new ManifestError(`larger than ${maxBytes} bytes`);
      const text = await readFile(path, 'utf8');
      const digest = createHash('sha256').update(text).digest('hex');
      if (before?.digest === digest)
        return before.signature === signature ? before : { ...before, signature };
      return { signature, digest, ...(await this.#parse(name, text, before?.content)) };
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined;
      return {
        signature,
        digest: '',
        content: before?.content,
        problems: [{ file: name, message: messageOf(error) }],
      };
    }
  }

  async #parse(
    file: string,
    text: string,
    last: ManifestContent | undefined,
  ): Promise<Pick<FileState, 'content' | 'problems'>> {
    try {
      const content = await readContent(text, file.endsWith('.json'), this.#options, last);
      return { content, problems: content.faults.map((fault) => problemOf(file, fault)) };
    } catch (error) {
      return { content: last, problems: [problemOf(file, error)] };
    }
  }
}

function problemOf(file: string, error: unknown): ManifestProblem {
  const position = error instanceof ManifestError ? error.position : undefined;
  const message = messageOf(error);
  return position ? { file, position, message } : { file, message };
}

/** Hidden files are swap files of editors and internals of ConfigMap volumes. */
function isManifestName(name: string): boolean {
  return !name.startsWith('.') && /\.(ya?ml|json)$/.test(name);
}

function signatureOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(':');
}

function sameFiles(left: ReadonlyMap<string, FileState>, right: ReadonlyMap<string, FileState>): boolean {
  if (left.size !== right.size) return false;
  return [...right].every(([name, { digest, content, problems }]) => {
    const other = left.get(name);
    // Contents with equal digests have equal faults; a file that cannot be read has one problem and no digest.
    const isSameProblem = other?.problems[0]?.message === problems[0]?.message;
    return other?.digest === digest && other.content === content && isSameProblem;
  });
}
