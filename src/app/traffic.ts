import type { TrafficSource } from '../inspect/traffic.ts';
import { openConntrackClient } from '../kernel/ct/client.ts';
import { followFlows } from '../kernel/ct/events.ts';
import { openPacketLog } from '../kernel/nflog/client.ts';
import { openNftClient } from '../kernel/nft/netlink-client.ts';
import { openRouteClient } from '../kernel/route/client.ts';
import { Sysctl } from '../kernel/sysctl.ts';
import { systemFiles } from '../kernel/system-files.ts';
import { systemClock } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import { switchOnAccounting } from '../traffic/accounting.ts';
import { ForwardedTraffic } from '../traffic/forwarded.ts';
import type { ObservedKernel } from '../traffic/observation.ts';
import { TrafficObserver } from '../traffic/observer.ts';
import type { Decider } from '../traffic/refusals.ts';
import { nodeFactsOf, ownAddresses } from './node-facts.ts';
import type { Proxiers } from './proxiers.ts';
import { modeContext, type Start } from './start.ts';

/** What tells about the traffic of this node. Opens nothing until somebody asks. */
export function openTraffic({ families }: Pick<Proxiers, 'families'>, start: () => Start): TrafficSource {
  const decider = (family: Family): Decider => {
    const now = start();
    const serviceCIDRs = families.find((each) => each.family === family)?.serviceCIDRs ?? [];
    return {
      rules: now.mode.packetRules(modeContext(family, now)),
      facts: async () => nodeFactsOf(family, now, await ownAddresses(), serviceCIDRs),
    };
  };
  const kernel = new TrafficObserver({
    feeds: families,
    open: openObservedKernel,
    decider,
    clock: systemClock,
  });
  const { mode } = start();
  if (!mode.forwarded || !mode.connections) return kernel;
  return new ForwardedTraffic({
    feeds: families,
    forwarded: mode.forwarded.bind(mode),
    connections: mode.connections.bind(mode),
    since: performance.timeOrigin,
    kernel,
    clock: systemClock,
  });
}

async function openObservedKernel(): Promise<ObservedKernel> {
  const libc = await loadLibc();
  const options = { clock: systemClock };
  const flows = openConntrackClient(libc, options);
  return {
    flows,
    follow: (listener) => followFlows(libc, { files: systemFiles, clock: systemClock }, listener),
    switchOnAccounting: () => switchOnAccounting(new Sysctl(systemFiles)),
    ownAddresses,
    interfaces,
    openRefusals: async () => ({
      nft: openNftClient(libc, options),
      openLog: (listener) => openPacketLog(libc, { ...options, random: Math.random }, listener),
    }),
    close: () => flows.close(),
  };
}

async function interfaces(): Promise<ReadonlyMap<number, string>> {
  const route = openRouteClient(await loadLibc(), { clock: systemClock });
  try {
    const links = await route.listLinks();
    return new Map(links.map(({ index, name }) => [index, name]));
  } finally {
    route.close();
  }
}
