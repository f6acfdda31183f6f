import type { CtlOptions } from './flags.ts';
import { nodeSource } from './node/node-source.ts';
import type { Patience } from './patience.ts';
import { serverAddress } from './server-address.ts';
import { serverSource } from './server-source.ts';
import type { ReportSource } from './source.ts';
import type { Environment } from './terminal.ts';

/** The proxy that these options name: that of a node with -N, else the one at an address. */
export async function runningProxy(
  options: CtlOptions,
  env: Environment,
  patience: Patience,
  hint = '',
): Promise<ReportSource> {
  if (options.onNode !== '') return nodeSource(options, env, patience);
  return serverSource(await serverAddress(options, env), patience, hint);
}
