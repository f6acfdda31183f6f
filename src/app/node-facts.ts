import { deviceName as ipvsDevice } from '../backends/ipvs/kernel.ts';
import type { NodeFacts } from '../inspect/node-facts.ts';
import { openRouteClient } from '../kernel/route/client.ts';
import { systemClock } from '../lib/clock.ts';
import { canonicalIPOf, type Family } from '../model/ip.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import type { Completed } from './complete.ts';
import type { NodeSetup } from './node-setup.ts';

export interface FactsInput {
  readonly completed: Completed;
  readonly setup: NodeSetup;
  readonly nodeName: string;
}

/** What of this node decides about packets of one family, besides plans. */
export function nodeFactsOf(
  family: Family,
  { completed, setup, nodeName }: FactsInput,
  ownAddresses: readonly string[],
  serviceCIDRs: readonly string[],
): NodeFacts {
  const { config, gates } = completed;
  // Userspace mode has no setting of its own for it.
  const isScheduled = ['ipvs', 'userspace'].includes(config.mode) && config.ipvs.scheduler !== '';
  return {
    mode: config.mode,
    family,
    nodeName,
    nodeIP: setup.addresses.ips[family],
    ownAddresses: ownAddresses.flatMap((address) => canonicalIPOf(family, address) ?? []),
    nodePortAddresses: setup.nodePorts[family],
    localDetector: setup.detectors[family],
    masqueradeAll: config.linux.masqueradeAll,
    serviceCIDRs,
    localhostNodePorts:
      config.mode === 'nftables'
        ? gates.enabled('KubeProxyNFTablesLocalhostNodePorts')
        : (config.iptables.localhostNodePorts ?? true),
    ...(isScheduled && { scheduler: config.ipvs.scheduler }),
  };
}

/**
 * Every address on an interface of this machine, but not those that ipvs mode has put there for services. Asked of the
 * kernel: Node leaves out interfaces without a carrier, whose addresses are the node's all the same.
 */
export async function ownAddresses(): Promise<string[]> {
  const route = openRouteClient(await loadLibc(), { clock: systemClock });
  try {
    const links = await route.listLinks();
    const ipvs = links.find(({ name }) => name === ipvsDevice)?.index;
    const addresses = await route.listAddresses();
    return addresses.filter(({ interfaceIndex }) => interfaceIndex !== ipvs).map(({ ip }) => ip);
  } finally {
    route.close();
  }
}
