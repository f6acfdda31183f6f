import { messageOf } from '../../lib/thrown.ts';
import type { Family } from '../../model/ip.ts';
import { chains, jumps } from './chains.ts';
import { deviceName, type IpvsKernel } from './kernel.ts';
import { setDefinition, setNames } from './sets.ts';

/**
 * Makes what everything else stands on: chains and the jumps to them, the device, the sets. Rejects when one of them
 * cannot be made, except for jumps: those that are missing go to `problems`.
 *
 * Differs from upstream (missing-chain-aborts), which goes on without a chain and then adds to chains that it did not
 * flush.
 */
export async function ensureStructure(kernel: IpvsKernel, family: Family, problems: Error[]): Promise<void> {
  const ensured = kernel.iptables.ensure({ chains, jumps });
  problems.push(...(await naming('failed to create chains', ensured)));
  await naming(`failed to create device ${deviceName}`, kernel.device.ensure());
  for (const set of setNames) {
    const definition = setDefinition(set, family);
    await naming(`failed to create ipset ${definition.name}`, kernel.sets.create(definition));
  }
}

async function naming<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new Error(`${what}: ${messageOf(cause)}`, { cause });
  }
}
