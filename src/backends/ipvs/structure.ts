import { messageOf } from '../../lib/thrown.ts';
import type { Family } from '../../model/ip.ts';
import { chains, jumps, tables } from './chains.ts';
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
  for (const table of tables) {
    for (const chain of chains[table]) {
      await naming(
        `failed to create chain ${chain} in table ${table}`,
        kernel.iptables.ensureChain(table, chain),
      );
    }
  }
  for (const jump of jumps) {
    const what = `failed to add a jump from ${jump.from} to ${jump.to} in table ${jump.table}`;
    await naming(what, kernel.iptables.ensureJump(jump)).catch((error: Error) => problems.push(error));
  }
  await naming(`failed to create device ${deviceName}`, kernel.device.ensure());
  for (const set of setNames) {
    const definition = setDefinition(set, family);
    await naming(`failed to create ipset ${definition.name}`, kernel.sets.create(definition));
  }
}

async function naming(what: string, work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (cause) {
    throw new Error(`${what}: ${messageOf(cause)}`, { cause });
  }
}
