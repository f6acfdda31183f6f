import { NftBatch } from '../../kernel/nft/batch.ts';
import type { TableRef } from '../../kernel/nft/objects.ts';
import { openChainKernel } from '../../kernel/xtables/open.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Logger } from '../../obs/log.ts';

/**
 * Node ports on loopback addresses need a kernel parameter, and KUBE-FIREWALL a rule, so that other machines cannot reach
 * what listens on loopback only. docs/decisions/0006-localnet.md says what of this a clean-up removes.
 */

export const localnetSysctl = 'net/ipv4/conf/all/route_localnet';

/**
 * An empty table: this program changed the parameter from 0 to 1. Like the parameter it belongs to the network namespace
 * and is gone after a boot.
 */
export const localnetMark: TableRef = { family: 'ip', name: 'kube-localnet' };

/** Makes the mark. Without it a clean-up leaves the kernel parameter as it is: no reason to fail. */
export async function markLocalnet(logger: Logger): Promise<void> {
  try {
    const kernel = await openChainKernel(systemClock);
    try {
      await kernel.nft.commit(new NftBatch().add('table', localnetMark));
    } finally {
      kernel.close();
    }
  } catch (error) {
    logger.v(2).info('Cannot mark that a kernel parameter is ours', { sysctl: localnetSysctl, error });
  }
}
