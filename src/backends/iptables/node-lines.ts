import type { Logger } from '../../obs/log.ts';
import { filterTail, natTail, unservedLoopback } from './fixed-rules.ts';
import type { IptablesSettings } from './settings.ts';
import type { Counters } from './tables.ts';

/** Lines that depend on the node's addresses and on what its kernel can do. */
export interface NodeLines {
  readonly filterTail: readonly string[];
  readonly natTail: readonly string[];
}

/** Logs each of the node's addresses at which node ports are asked for and cannot be served. */
export function nodeLines(
  settings: IptablesSettings,
  counters: Counters,
  addresses: readonly string[],
  logger: Logger,
): NodeLines {
  if (!settings.nodePortAddresses.matchAll) {
    for (const ip of unservedLoopback(settings, addresses)) {
      const problem = new Error(`node ports cannot be served on loopback address ${ip}`);
      logger.error(problem, 'Node port address ignored', { ipFamily: settings.family });
    }
  }
  return { filterTail: filterTail(settings, counters), natTail: natTail(settings, addresses) };
}
