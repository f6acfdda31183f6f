import { getSystemErrorMap } from 'node:util';

/** Why nothing can listen at `address` (`host:port`) as Go words it, which is what event readers search for. */
export function listenErrorText(address: string, error: NodeJS.ErrnoException): string {
  const known = error.errno === undefined ? undefined : getSystemErrorMap().get(error.errno);
  return known ? `listen tcp ${address}: bind: ${known[1]}` : error.message;
}
