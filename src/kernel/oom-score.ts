import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import { hasCode } from '../lib/thrown.ts';
import type { SystemFiles } from './system-files.ts';

const PATH = '/proc/self/oom_score_adj';
const TRIES = 2;
const PAUSE_MS = 100;

/** Sets how readily the kernel kills this process when memory runs out. Tries twice, then throws; ENOENT at once. */
export async function applyOOMScoreAdj(score: number, files: SystemFiles, clock: Clock): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      files.write(PATH, String(score));
      return;
    } catch (error) {
      if (hasCode(error, 'ENOENT') || attempt === TRIES) throw error;
      await sleep(clock, PAUSE_MS);
    }
  }
}
