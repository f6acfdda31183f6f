import { runCommand } from './app/command.ts';

/** The kube-proxy program. Ends the process; its exit code is upstream's. */
export async function main(argv: readonly string[]): Promise<void> {
  process.exit(await runCommand(argv));
}
