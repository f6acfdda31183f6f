import type { Mode } from '../backends/mode.ts';
import { hasNetAdmin } from '../kernel/capabilities.ts';
import { systemFiles } from '../kernel/system-files.ts';
import type { Logger } from '../obs/log.ts';
import { allModes, modesReplacedBy } from './modes.ts';

/** Removes what any mode ever wrote (--cleanup); throws when some of it could not be removed. */
export async function cleanUp(logger: Logger): Promise<void> {
  const failed = await cleanUpModes(await allModes(), logger);
  if (failed) throw new Error('encountered an error while tearing down rules');
}

/**
 * Removes what the modes that `mode` takes over from left behind. A failure is logged and the start goes on. Who may
 * not remove anything does not try: iptables would be asked again and again, as if it were busy.
 */
export async function removeLeftovers(mode: string, logger: Logger): Promise<void> {
  if (!hasNetAdmin(systemFiles)) {
    logger.info('Rules that another mode may have left stay: removing them needs CAP_NET_ADMIN');
    return;
  }
  await cleanUpModes(await modesReplacedBy(mode), logger);
}

async function cleanUpModes(modes: ReadonlyMap<string, Mode>, logger: Logger): Promise<boolean> {
  let hasFailed = false;
  for (const [name, mode] of modes) {
    try {
      await mode.cleanup(logger);
    } catch (error) {
      hasFailed = true;
      logger.error(error, 'Failed to remove rules', { mode: name });
    }
  }
  return hasFailed;
}
