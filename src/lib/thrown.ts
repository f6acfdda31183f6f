/** What was thrown or rejected with is of no known type. */

/** The thing itself where it is an Error, as nearly always. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** It is an error of the system or of Node with that code, such as `ENOENT`. */
export function hasCode(thrown: unknown, code: string): thrown is Error {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code;
}
