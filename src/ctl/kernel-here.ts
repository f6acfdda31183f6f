import { ownAddresses } from '../app/node-facts.ts';
import type { Connected } from '../app/start.ts';
import { hasNetAdmin } from '../kernel/capabilities.ts';
import { systemFiles } from '../kernel/system-files.ts';
import { messageOf } from '../lib/thrown.ts';
import { type Family, families } from '../model/ip.ts';

/** The kernel of this machine, for a comparison with plans. */
export interface KernelHere {
  /** The families that a proxy serves here; both when the kernel cannot be compared. */
  readonly families: ReadonlySet<Family>;
  /** Why the kernel cannot be compared with the plans; undefined when it can. */
  readonly obstacle: string | undefined;
}

/**
 * Finds out whether the kernel of this machine can be compared with the plans of a node. `mayBeElsewhere`: the user
 * named the node, which may be another machine.
 */
export async function kernelHere(connected: Connected, mayBeElsewhere: boolean): Promise<KernelHere> {
  const { mode, logger } = connected;
  const obstacle = await obstacleOf(connected, mayBeElsewhere);
  if (obstacle !== undefined) return { families: new Set(families), obstacle };
  try {
    return { families: await mode.supportedFamilies(logger), obstacle: undefined };
  } catch (error) {
    return { families: new Set(families), obstacle: messageOf(error) };
  }
}

async function obstacleOf(connected: Connected, mayBeElsewhere: boolean): Promise<string | undefined> {
  const { mode } = connected;
  if (mode.servesInProcess) {
    return `in ${mode.name} mode the process of kube-proxy serves connections, and only that process can be asked`;
  }
  const elsewhere = mayBeElsewhere ? await otherMachine(connected) : undefined;
  if (elsewhere !== undefined || hasNetAdmin(systemFiles)) return elsewhere;
  return 'reading the rules of the kernel needs CAP_NET_ADMIN: run kube-proxyctl as root';
}

/** The reason when the node is not this machine; undefined when it is, and when its addresses are unknown. */
async function otherMachine({ nodeName, nodeStart }: Connected): Promise<string | undefined> {
  const { nodeIPs } = nodeStart;
  const here = new Set(await ownAddresses());
  if (nodeIPs.length === 0 || nodeIPs.some((ip) => here.has(ip))) return undefined;
  return `node ${nodeName} is another machine: none of its addresses (${nodeIPs.join(', ')}) is here`;
}
