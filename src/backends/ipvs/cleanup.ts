import { Commands } from '../../kernel/iptables/commands.ts';
import type { IpvsOpeners } from '../../kernel/ipvs/openers.ts';
import type { RunProgram } from '../../kernel/program.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import type { Clock } from '../../lib/clock.ts';
import { asError, messageOf } from '../../lib/thrown.ts';
import { type Family, families } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import { removeChains } from '../jumps.ts';
import { chains, jumps, tables } from './chains.ts';
import { deviceName } from './kernel.ts';
import { kernelName, setNames } from './sets.ts';

export interface CleanupContext {
  readonly open: IpvsOpeners;
  readonly files: SystemFiles;
  readonly run: RunProgram;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** There as long as the kernel has IPVS loaded. */
const ipvsTable = '/proc/net/ip_vs';

/**
 * Removes everything of ipvs mode; nothing there is success. Every step is tried; a failure is thrown at the end.
 *
 * Differs from upstream (cleanup-without-module, cleanup-ipv6-sets), which leaves rules and sets when it cannot load
 * IPVS, and never removes the sets of IPv6.
 */
export async function removeAll(context: CleanupContext): Promise<void> {
  const failures: Error[] = [];
  const attempt = async (what: string, work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      failures.push(asError(error));
      context.logger.error(error, 'Failed to remove what ipvs mode left', { what });
    }
  };
  await attempt('virtual servers', () => removeServers(context));
  await attempt(`device ${deviceName}`, () => removeDevice(context));
  for (const family of families) await attempt(`rules of ${family}`, () => removeRules(family, context));
  await attempt('ipsets', () => removeSets(context));
  if (failures[0]) throw failures[0];
}

/** All of them, as upstream does: what is not loaded has none. */
async function removeServers({ open, files }: CleanupContext): Promise<void> {
  if (!exists(files, ipvsTable)) return;
  const ipvs = await open.ipvs();
  await ipvs.flush().finally(() => ipvs.close());
}

async function removeDevice({ open }: CleanupContext): Promise<void> {
  const devices = open.devices();
  await devices.remove(deviceName).finally(() => devices.close());
}

async function removeRules(family: Family, { run, clock, logger }: CleanupContext): Promise<void> {
  const commands = new Commands({ family, run, clock, logger });
  const present = await commands.leftoverChains();
  for (const table of tables) {
    if (!chains[table].some((chain) => present?.has(chain))) continue;
    // iptables mode has chains of the same names, which it removes itself.
    const left = await removeChains(commands, table, { chains, jumps });
    if (left.length > 0)
      logger.v(2).info('Chains are left to iptables mode', { ipFamily: family, table, chains: left });
  }
}

async function removeSets({ open, logger }: CleanupContext): Promise<void> {
  const sets = open.sets();
  try {
    try {
      await sets.protocol();
    } catch (error) {
      logger.v(2).info('No ipsets to clean up', { reason: messageOf(error) });
      return;
    }
    const failures: Error[] = [];
    for (const name of families.flatMap((family) => setNames.map((set) => kernelName(set, family)))) {
      await sets.destroy(name).catch((error: unknown) => failures.push(asError(error)));
    }
    if (failures[0]) throw failures[0];
  } finally {
    sets.close();
  }
}

function exists(files: SystemFiles, path: string): boolean {
  try {
    files.read(path);
    return true;
  } catch {
    return false;
  }
}
