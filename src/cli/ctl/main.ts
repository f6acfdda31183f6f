import { quote } from '../../lib/go-quote.ts';
import { KUBERNETES_VERSION } from '../version.ts';

/** Where the program writes, and how it says how it ended. */
export interface Terminal {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  exitCode?: number | string | null | undefined;
}

const help = `kube-proxyctl is the companion of kube-proxy for looking into a running proxy. It has no commands yet.

Usage:
  kube-proxyctl [flags]

Flags:
  -h, --help      Show this text.
      --version   Print the version and exit.
`;

/** Runs kube-proxyctl with the arguments behind the program's name. */
export async function main(args: string[], terminal: Terminal = process): Promise<void> {
  const [argument, ...rest] = args;
  if (rest.length === 0 && (argument === '--help' || argument === '-h')) {
    terminal.stdout.write(help);
  } else if (rest.length === 0 && argument === '--version') {
    terminal.stdout.write(`kube-proxyctl for Kubernetes ${KUBERNETES_VERSION}\n`);
  } else {
    terminal.stderr.write(`Error: ${complaint(args)}; see kube-proxyctl --help\n`);
    terminal.exitCode = 1;
  }
}

function complaint([first, second]: string[]): string {
  if (first === undefined) return 'a flag is needed, as there are no commands yet';
  const known = ['--help', '-h', '--version'].includes(first);
  if (known && second !== undefined) return `${first} stands alone, got ${quote(second)} too`;
  return first.startsWith('-') ? `unknown flag: ${first}` : `unknown command ${quote(first)}`;
}
