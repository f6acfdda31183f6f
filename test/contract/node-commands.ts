import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/**
 * Runs a command in the namespace of this process, which is the node's. Never blocks: this process also answers for
 * the API server.
 */
export async function runInNode(command: string, ...args: readonly string[]): Promise<string> {
  return (await execute(command, args)).stdout;
}
