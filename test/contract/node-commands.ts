import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/**
 * Runs a command in the namespace of this process, which is the node's. It does not block, because the API server runs
 * in this process, too.
 */
export async function runInNode(command: string, ...args: readonly string[]): Promise<string> {
  return (await execute(command, args)).stdout;
}
