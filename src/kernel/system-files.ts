import { readFileSync, writeFileSync } from 'node:fs';

/** Access to the kernel's settings in /proc and /sys; a plain object in tests. */
export interface SystemFiles {
  read(path: string): string;
  write(path: string, text: string): void;
}

/** The real /proc and /sys. */
export const systemFiles: SystemFiles = {
  read: (path) => readFileSync(path, 'utf8'),
  // Neither file system creates files: O_CREAT would turn "no such setting" into a confusing EACCES.
  write: (path, text) => writeFileSync(path, text, { flag: 'r+' }),
};
