import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';

/**
 * Makes a file, unless an earlier run made it from the same things. `origin` is what it is made from, as JSON; a note
 * beside the file keeps it.
 */
export function makeOnce(file: string, origin: object, make: () => void): void {
  const note = `${file}.origin`;
  const text = JSON.stringify(origin);
  if (existsSync(file) && existsSync(note) && readFileSync(note, 'utf8') === text) return;
  // A run that is killed in the middle must not leave the old note beside a new file.
  rmSync(note, { force: true });
  make();
  writeFileSync(note, text);
}

/** Tells a program from another one that takes its place, which may be older. */
export function identityOf(program: string): object {
  const { ino, size, mtimeMs } = statSync(program);
  return { program, ino, size, mtimeMs };
}
