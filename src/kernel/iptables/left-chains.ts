import type { Logger } from '../../obs/log.ts';
import { CommandError, MissingProgramError } from './command-error.ts';
import type { Commands } from './commands.ts';

/**
 * Chains named KUBE-…, for who removes what others left; undefined when the programs are not there or do not work, so
 * that they cannot have left anything.
 */
export async function leftChains(
  commands: Commands,
  logger: Logger,
): Promise<ReadonlySet<string> | undefined> {
  try {
    return await commands.kubernetesChains();
  } catch (error) {
    if (!(error instanceof CommandError || error instanceof MissingProgramError)) throw error;
    logger.v(2).info('No iptables to clean up', { ip_family: commands.family, reason: error.message });
    return undefined;
  }
}
