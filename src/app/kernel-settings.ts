import { tuneConntrack } from '../kernel/conntrack-tuning.ts';
import { applyOOMScoreAdj } from '../kernel/oom-score.ts';
import { systemFiles } from '../kernel/system-files.ts';
import { systemClock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { StartInput } from './start.ts';

/** Sets the conntrack parameters. Throws when that fails and the mode needs them. */
export function applyConntrack({ mode, completed, logger }: StartInput): void {
  try {
    tuneConntrack(completed.config.linux.conntrack, systemFiles, logger);
  } catch (error) {
    const reason = messageOf(error);
    if (mode.toleratesConntrackFailure) {
      logger.info('Conntrack parameters are left as they are', { reason });
      return;
    }
    throw new Error(`could not set conntrack parameters from kube-proxy configuration: ${reason}`, {
      cause: error,
    });
  }
}

/** Sets the OOM score of this process; logs when that fails. */
export async function applyOOMScore({ completed, logger }: StartInput): Promise<void> {
  const { oomScoreAdj } = completed.config.linux;
  if (oomScoreAdj === null) return;
  try {
    await applyOOMScoreAdj(oomScoreAdj, systemFiles, systemClock);
  } catch (error) {
    logger.v(2).info('Failed to apply OOMScore', { err: error });
  }
}
