import type { Position } from './documents.ts';

/** Something in a manifest that is not in effect, and why. */
export interface ManifestProblem {
  readonly file: string;
  readonly position?: Position;
  readonly message: string;
}

/** `file:line:column: message`, as compilers say it. */
export function printProblem({ file, position, message }: ManifestProblem): string {
  const place = position ? `${file}:${position.line}:${position.column}` : file;
  return `${place}: ${message}`;
}
