import { clientSourceObstacle } from '../../forwarder/client-source.ts';
import { hasNetAdmin } from '../../kernel/capabilities.ts';
import { type KernelInterfaces, openAddresses, openKernel } from '../../kernel/open.ts';
import { type SystemFiles, systemFiles } from '../../kernel/system-files.ts';
import { messageOf } from '../../lib/thrown.ts';
import { isLoopback, toIP } from '../../model/ip.ts';
import type { InspectionContext } from '../mode.ts';
import { Portals } from './portals/portals.ts';
import type { UserspaceSettings } from './settings.ts';

/** What can be used where packets can be captured. */
export interface Captured extends KernelInterfaces {
  /** Why endpoints cannot see clients' own addresses, in words; undefined when they can. */
  readonly sourceObstacle: string | undefined;
}

/** What can be used where packets cannot be captured. */
export interface Uncaptured extends Omit<KernelInterfaces, 'nft' | 'links'> {
  /** Why they cannot, in words. */
  readonly reason: string;
}

/**
 * What the kernel offers for capturing packets, or why it cannot be used: for want of a privilege, of nf_tables, or of
 * anything that the table needs. The kernel checks the table without applying it.
 */
export async function tryCapture(
  settings: UserspaceSettings,
  { clock, logger }: Pick<InspectionContext, 'clock' | 'logger'>,
): Promise<Captured | Uncaptured> {
  let kernel: KernelInterfaces | undefined;
  try {
    kernel = await openKernel(clock, logger);
    const { nft, addresses, links } = kernel;
    const sourceObstacle = await obstacleToSources(settings, nft);
    if (sourceObstacle !== undefined) await new Portals({ ...settings, keepsSource: false }, nft).check();
    return { nft, addresses, links, sourceObstacle, close: () => kernel?.close() };
  } catch (error) {
    kernel?.close();
    const addresses = await openAddresses(clock, logger);
    const reason = obstacleText(error, process.getuid?.() === 0, systemFiles);
    return { reason, addresses, close: () => addresses.close() };
  }
}

/** Why endpoints cannot see clients' addresses, in words; undefined when they can. */
export async function obstacleToSources(
  settings: UserspaceSettings,
  nft: KernelInterfaces['nft'],
): Promise<string | undefined> {
  const { family, hostIP } = settings;
  if (isLoopback(toIP(hostIP))) return `proxy sockets listen on ${hostIP}, a loopback address`;
  const obstacle = await clientSourceObstacle(family);
  if (obstacle !== undefined) return obstacle;
  try {
    await new Portals({ ...settings, keepsSource: true }, nft).check();
    return undefined;
  } catch (error) {
    return `nftables: ${messageOf(error)}`;
  }
}

/** The reason in words: a remedy where one is known, else the kernel's text. */
export function obstacleText(error: unknown, isRoot: boolean, files: Pick<SystemFiles, 'read'>): string {
  const text = messageOf(error);
  const isForbidden = /EPERM|EACCES/.test(text) && !hasNetAdmin(files);
  if (!isForbidden) return `nftables: ${text}`;
  return isRoot ? 'CAP_NET_ADMIN is missing' : 'not running as root (CAP_NET_ADMIN is needed)';
}
