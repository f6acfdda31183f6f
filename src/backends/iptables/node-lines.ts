import type { Logger } from '../../obs/log.ts';
import { filterTail, natTail, unservedLoopback } from './fixed-rules.ts';
import type { IptablesSettings } from './settings.ts';
import type { Counters } from './tables.ts';

/** Lines that depend on the node's addresses and on what its kernel can do. */
export interface NodeLines {
  readonly filterTail: readonly string[];
  readonly natTail: readonly string[];
}

export interface NodeLinesOptions {
  readonly settings: IptablesSettings;
  /** Addresses on the node's interfaces at this moment. */
  readonly interfaceAddresses: () => Promise<readonly string[]>;
  readonly logger: Logger;
}

/** Never fails: when the addresses cannot be listed, node ports are not served and everything else is. */
export async function nodeLines(options: NodeLinesOptions, counters: Counters): Promise<NodeLines> {
  const { settings } = options;
  const addresses = settings.nodePortAddresses.matchAll ? [] : await listAddresses(options);
  return { filterTail: filterTail(settings, counters), natTail: natTail(settings, addresses) };
}

async function listAddresses(options: NodeLinesOptions): Promise<readonly string[]> {
  const { settings, interfaceAddresses, logger } = options;
  const { family } = settings;
  try {
    const addresses = await interfaceAddresses();
    for (const ip of unservedLoopback(settings, addresses)) {
      const problem = new Error(`node ports cannot be served on loopback address ${ip}`);
      logger.error(problem, 'Node port address ignored', { ip_family: family });
    }
    return addresses;
  } catch (error) {
    logger.error(error, 'Failed to list interface addresses; node ports are not served', {
      ipFamily: family,
    });
    return [];
  }
}
