import { formatRealServer, formatVirtualServer, isForeign } from '../../kernel/ipvs/objects.ts';
import { asError, messageOf } from '../../lib/thrown.ts';
import { canonicalIPOf } from '../../model/ip.ts';
import { CurrentState } from './current.ts';
import type { DesiredState } from './desired.ts';
import { AbsentError } from './errors.ts';
import { serviceableAddresses } from './interface-facts.ts';
import { deviceName, type IpvsKernel } from './kernel.ts';
import { kernelName, setNames } from './sets.ts';

/**
 * Reads what the kernel holds in the family of `desired`; rejects when virtual servers cannot be listed. Whatever
 * else cannot be read goes to `problems` and is treated as CurrentState says.
 */
export async function readCurrent(
  kernel: Pick<IpvsKernel, 'servers' | 'sets' | 'device'>,
  desired: DesiredState,
  problems: Error[],
): Promise<CurrentState> {
  const current = new CurrentState();
  await readServers(kernel, desired, current);
  await readSets(kernel, desired, current, problems);
  try {
    const listed = await kernel.device.addresses();
    for (const address of serviceableAddresses(desired.settings.family, listed)) {
      current.addresses.add(address);
    }
  } catch (cause) {
    problems.push(new Error(`failed to list the addresses of ${deviceName}: ${messageOf(cause)}`, { cause }));
  }
  return current;
}

async function readServers(
  { servers }: Pick<IpvsKernel, 'servers'>,
  desired: DesiredState,
  current: CurrentState,
): Promise<void> {
  for (const server of await servers.listServers()) {
    // Differs from upstream (firewall-mark-servers), which reads these as 0.0.0.0:0 and tries to delete them.
    if (isForeign(server)) continue;
    if (canonicalIPOf(desired.settings.family, server.address) === undefined) continue;
    current.servers.set(formatVirtualServer(server), { server, reals: new Map() });
  }
  const all = await servers.listAllRealServers?.();
  for (const [key, { server }] of current.servers) {
    // What is to be deleted takes its real servers along, whatever they are.
    if (!desired.server(key)) continue;
    try {
      const listed = all?.get(key) ?? (await servers.listRealServers(server));
      const reals = listed.map(({ address, port, weight }) => ({ address, port, weight }));
      current.servers.set(key, {
        server,
        reals: new Map(reals.map((real) => [formatRealServer(real), real])),
      });
    } catch (error) {
      current.servers.set(key, { server, reals: new Map(), unreadable: asError(error) });
    }
  }
}

async function readSets(
  { sets }: Pick<IpvsKernel, 'sets'>,
  desired: DesiredState,
  current: CurrentState,
  problems: Error[],
): Promise<void> {
  for (const set of setNames) {
    const name = kernelName(set, desired.settings.family);
    try {
      const listed = await sets.list(name);
      if (!listed) throw new AbsentError('such set');
      current.sets.set(set, new Set(listed.entries));
    } catch (cause) {
      problems.push(new Error(`failed to list ipset ${name}: ${messageOf(cause)}`, { cause }));
    }
  }
}
