import type { Mode } from '../backends/mode.ts';
import type { NodeFacts } from '../inspect/node-facts.ts';
import { openRouteClient } from '../kernel/route/client.ts';
import { systemClock } from '../lib/clock.ts';
import { canonicalIPOf, type Family } from '../model/ip.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import type { Completed } from './complete.ts';
import { serviceAddressDevice } from './modes.ts';
import type { NodeSetup } from './node-setup.ts';

export interface FactsInput {
  readonly completed: Completed;
  readonly mode: Mode;
  readonly setup: NodeSetup;
  readonly nodeName: string;
}

/** The facts of this node that decide about packets of one family, besides plans. */
export function nodeFactsOf(
  family: Family,
  { completed, mode, setup, nodeName }: FactsInput,
  ownAddresses: readonly string[],
  serviceCIDRs: readonly string[],
): NodeFacts {
  const { config, gates } = completed;
  return {
    mode: mode.name,
    family,
    nodeName,
    nodeIP: setup.addresses.ips[family],
    ownAddresses: ownAddresses.flatMap((address) => canonicalIPOf(family, address) ?? []),
    nodePortAddresses: setup.nodePorts[family],
    localDetector: setup.detectors[family],
    masqueradeAll: config.linux.masqueradeAll,
    serviceCIDRs,
    ...mode.packetFacts({ config, gateEnabled: (gate) => gates.enabled(gate) }),
  };
}

/**
 * Every address on an interface of this machine, without those that ipvs mode keeps there for services. Asks the
 * kernel, because Node.js leaves out interfaces without a carrier.
 */
export async function ownAddresses(): Promise<string[]> {
  const route = openRouteClient(await loadLibc(), { clock: systemClock });
  try {
    const links = await route.listLinks();
    const device = links.find(({ name }) => name === serviceAddressDevice)?.index;
    const addresses = await route.listAddresses();
    return addresses.filter(({ interfaceIndex }) => interfaceIndex !== device).map(({ ip }) => ip);
  } finally {
    route.close();
  }
}
