import type { IpsetClient } from '../../kernel/ipset/client.ts';
import type { AnyTable } from '../../kernel/iptables/commands.ts';
import type { IpvsClient } from '../../kernel/ipvs/client.ts';
import { formatVirtualServer, isForeign } from '../../kernel/ipvs/objects.ts';
import { type IpvsOpeners, ipvsOpeners } from '../../kernel/ipvs/openers.ts';
import { type SystemFiles, systemFiles } from '../../kernel/system-files.ts';
import { systemClock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/thrown.ts';
import { families } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import { chainLeftovers } from '../chain-leftovers.ts';
import { inTurn, joined, type Leftover, type LeftoverSource } from '../leftovers.ts';
import { chains } from './chains.ts';
import { deviceName } from './kernel.ts';
import { kernelName, setNames } from './sets.ts';

/** How the kernel is reached. */
export interface IpvsAccess {
  readonly files: SystemFiles;
  open(): Promise<IpvsOpeners>;
}

const realAccess: IpvsAccess = { files: systemFiles, open: () => ipvsOpeners(systemClock) };

/** There as long as the kernel has IPVS loaded. */
const ipvsTable = '/proc/net/ip_vs';

/**
 * Everything of ipvs mode. Rules come before the sets that they look up.
 *
 * Differs from upstream (cleanup-without-module, cleanup-ipv6-sets), which leaves rules and sets when it cannot load
 * IPVS, and never removes the sets of IPv6.
 */
export const ipvsLeftovers: LeftoverSource = joined(
  serverLeftovers(realAccess),
  deviceLeftovers(realAccess),
  // iptables mode has chains of the same names.
  chainLeftovers(isOwnChain),
  setLeftovers(realAccess),
);

function isOwnChain(table: AnyTable, chain: string): boolean {
  return table !== 'mangle' && chains[table].includes(chain);
}

/** All virtual servers, as upstream does: a kernel that has not loaded IPVS has none. */
export function serverLeftovers({ files, open }: IpvsAccess): LeftoverSource {
  const withIpvs = async <T>(otherwise: T, work: (ipvs: IpvsClient) => Promise<T>): Promise<T> => {
    if (!exists(files, ipvsTable)) return otherwise;
    const ipvs = await (await open()).ipvs();
    return work(ipvs).finally(() => ipvs.close());
  };
  return {
    find: () =>
      withIpvs<readonly Leftover[]>([], async (ipvs) =>
        (await ipvs.listServers()).map((server) => ({
          kind: 'IPVS virtual server',
          name: isForeign(server) ? server.foreign : formatVirtualServer(server),
          count: 1,
        })),
      ),
    remove: () => withIpvs(undefined, (ipvs) => ipvs.flush()),
  };
}

export function deviceLeftovers({ open }: IpvsAccess): LeftoverSource {
  return {
    async find() {
      const devices = (await open()).devices();
      const device = await devices.find(deviceName).finally(() => devices.close());
      return device ? [{ kind: 'network device', name: deviceName, count: 1 }] : [];
    },
    async remove() {
      const devices = (await open()).devices();
      await devices.remove(deviceName).finally(() => devices.close());
    },
  };
}

export function setLeftovers({ open }: IpvsAccess): LeftoverSource {
  const names = families.flatMap((family) => setNames.map((set) => kernelName(set, family)));
  return {
    find: ({ logger }) =>
      withSets<readonly Leftover[]>(logger, [], async (sets) => {
        const found: Leftover[] = [];
        for (const name of names) {
          if (await sets.list(name)) found.push({ kind: 'ipset', name, count: 1 });
        }
        return found;
      }),
    remove: ({ logger }) =>
      withSets(logger, undefined, (sets) =>
        inTurn(names.map((name) => async () => void (await sets.destroy(name)))),
      ),
  };

  async function withSets<T>(
    logger: Logger,
    otherwise: T,
    work: (sets: IpsetClient) => Promise<T>,
  ): Promise<T> {
    const sets = (await open()).sets();
    try {
      await sets.protocol();
    } catch (error) {
      sets.close();
      logger.v(2).info('No ipsets to clean up', { reason: messageOf(error) });
      return otherwise;
    }
    return work(sets).finally(() => sets.close());
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
