import type { NodeFacts } from '../backends/node-facts.ts';
import { openRouteClient } from '../kernel/route/client.ts';
import { systemClock } from '../lib/clock.ts';
import { canonicalIPOf, type Family } from '../model/ip.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import { serviceAddressDevice } from './modes.ts';
import { modeContext } from './start.ts';

/** The facts of this node that decide about packets of one family, besides plans. */
export function nodeFactsOf(
  family: Family,
  start: Parameters<typeof modeContext>[1],
  ownAddresses: readonly string[],
  serviceCIDRs: readonly string[],
): NodeFacts {
  const { config, nodeIP, nodePortAddresses, localDetector } = modeContext(family, start);
  return {
    family,
    nodeIP,
    ownAddresses: ownAddresses.flatMap((address) => canonicalIPOf(family, address) ?? []),
    nodePortAddresses,
    localDetector,
    masqueradeAll: config.linux.masqueradeAll,
    serviceCIDRs,
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
