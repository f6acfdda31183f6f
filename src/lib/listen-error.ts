import { getSystemErrorMap } from 'node:util';

/** Returns why listening at `address` (`host:port`) failed, in Go's words, for which operators search events. */
export function listenErrorText(address: string, error: NodeJS.ErrnoException): string {
  const known = error.errno === undefined ? undefined : getSystemErrorMap().get(error.errno);
  return known ? `listen tcp ${address}: bind: ${known[1]}` : error.message;
}
