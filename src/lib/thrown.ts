/** Returns an Error as it is, and wraps anything else. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Whether it is an error of the system or of Node with this code, such as `ENOENT`. */
export function hasCode(thrown: unknown, code: string): thrown is Error {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code;
}
