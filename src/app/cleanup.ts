import type { Mode } from '../backends/mode.ts';
import { hasNetAdmin } from '../kernel/capabilities.ts';
import { systemFiles } from '../kernel/system-files.ts';
import type { Logger } from '../obs/log.ts';
import { allModes, modesReplacedBy } from './modes.ts';

/** Removes everything that any mode wrote (--cleanup); throws when some of it could not be removed. */
export async function cleanUp(logger: Logger): Promise<void> {
  const failed = await cleanUpModes(await allModes(), logger);
  if (failed) throw new Error('encountered an error while tearing down rules');
}

/**
 * Removes the rules of the modes that `mode` replaces. Logs a failure, and the start goes on. Without CAP_NET_ADMIN it
 * does not try: the iptables programs would be retried as if they were busy.
 */
export async function removeLeftovers(mode: Mode, logger: Logger): Promise<void> {
  if (!hasNetAdmin(systemFiles)) {
    logger.info('Rules that another mode may have left stay: removing them needs CAP_NET_ADMIN');
    return;
  }
  await cleanUpModes(await modesReplacedBy(mode), logger);
}

async function cleanUpModes(modes: readonly Mode[], logger: Logger): Promise<boolean> {
  let hasFailed = false;
  for (const mode of modes) {
    try {
      await mode.cleanup(logger);
    } catch (error) {
      hasFailed = true;
      logger.error(error, 'Failed to remove rules', { mode: mode.name });
    }
  }
  return hasFailed;
}
