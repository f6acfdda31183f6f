import { once } from 'node:events';
import { type CommandContext, print } from '../command.ts';
import type { CtlOptions } from '../flags.ts';
import { pagesOf } from '../source.ts';
import { EXIT_OK, type ExitCode } from '../terminal.ts';
import { readPageFiles } from './page-files.ts';
import { addressOf, createPageServer } from './page-server.ts';
import { kernelTracer } from './page-trace.ts';

/** Serves the page until the program is interrupted. */
export async function servePage(context: CommandContext): Promise<ExitCode> {
  const { options, source, clock } = context;
  const files = readPageFiles(callOf(options));
  const server = createPageServer(files, pagesOf(source), kernelTracer(source, clock));
  await once(server.listen(options.port, '127.0.0.1'), 'listening').catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EADDRINUSE' ? new Error(`port ${options.port} is in use`) : error;
  });
  const url = addressOf(server);
  print(context, { url }, () => `The page is at ${url} until Ctrl-C ends it.\n`);
  await once(server, 'close');
  return EXIT_OK;
}

/** The beginning of a command that asks the same proxy. */
export function callOf(options: CtlOptions): string {
  const { server, config, onNode, context, kubeconfig } = options;
  const flags = Object.entries({ server, config, 'on-node': onNode, context, kubeconfig });
  const given = flags.flatMap(([name, value]) => (value === '' ? [] : [`--${name}=${inShell(value)}`]));
  return ['kube-proxyctl', ...given].join(' ');
}

/** Quotes a word for a shell where that is needed. */
function inShell(word: string): string {
  return /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
