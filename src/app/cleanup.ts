import type { Mode } from '../backends/mode.ts';
import type { Logger } from '../obs/log.ts';
import { allModes, modesReplacedBy } from './modes.ts';

/** Removes what any mode ever wrote (--cleanup); throws when some of it could not be removed. */
export async function cleanUp(logger: Logger): Promise<void> {
  const failed = await cleanUpModes(await allModes(), logger);
  if (failed) throw new Error('encountered an error while tearing down rules');
}

/** Removes what the modes that `mode` takes over from left behind. A failure is logged and the start goes on. */
export async function removeLeftovers(mode: string, logger: Logger): Promise<void> {
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
