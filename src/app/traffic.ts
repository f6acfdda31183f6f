import type { TrafficMeter, TrafficSource } from '../inspect/traffic.ts';
import { hasNetAdmin } from '../kernel/capabilities.ts';
import { openConntrackClient } from '../kernel/ct/client.ts';
import { followFlows } from '../kernel/ct/events.ts';
import { openPacketLog } from '../kernel/nflog/client.ts';
import type { NftClient } from '../kernel/nft/client.ts';
import { openNftClient } from '../kernel/nft/netlink-client.ts';
import { openRouteClient } from '../kernel/route/client.ts';
import { Sysctl } from '../kernel/sysctl.ts';
import { systemFiles } from '../kernel/system-files.ts';
import { systemClock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Family } from '../model/ip.ts';
import { watchingTables } from '../model/watching-table.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import type { Libc } from '../native/libc.ts';
import type { Logger } from '../obs/log.ts';
import { switchOnAccounting } from '../traffic/accounting.ts';
import { ForwardedTraffic } from '../traffic/forwarded.ts';
import { type MeterOptions, RuleMeter } from '../traffic/meter.ts';
import type { ObservedKernel } from '../traffic/observation.ts';
import { TrafficObserver } from '../traffic/observer.ts';
import type { RefusalKernel } from '../traffic/refusal-log.ts';
import type { Decider } from '../traffic/refusals.ts';
import { nodeFactsOf, ownAddresses } from './node-facts.ts';
import type { Proxiers } from './proxiers.ts';
import { modeContext, type Start } from './start.ts';

/** What tells about the traffic of this node. Opens nothing until somebody asks. */
export function openTraffic(
  { families }: Pick<Proxiers, 'families'>,
  start: () => Start,
  logger: Logger,
): TrafficSource {
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
    openMeter: async (kinds) => {
      if (!start().mode.rewritesWithNat)
        throw new Error('destinations are not rewritten with NAT in this mode');
      return openRuleMeter({ feeds: families, kinds, decider, clock: systemClock });
    },
    onEventMeter: (error) =>
      logger.info('Counting the traffic of Services with events', { reason: messageOf(error) }),
    decider,
    clock: systemClock,
  });
  const { mode } = start();
  if (!mode.forwarded || !mode.connections) return kernel;
  return new ForwardedTraffic({
    feeds: families,
    forwarded: mode.forwarded.bind(mode),
    connections: mode.connections.bind(mode),
    hasRules: () => hasNetAdmin(systemFiles),
    since: performance.timeOrigin,
    kernel,
    clock: systemClock,
  });
}

async function openObservedKernel(): Promise<ObservedKernel> {
  if (!hasNetAdmin(systemFiles)) {
    throw new Error(
      'the kernel tells about connections only with CAP_NET_ADMIN, which kube-proxy does not have',
    );
  }
  const libc = await loadLibc();
  const options = { clock: systemClock };
  const flows = openConntrackClient(libc, options);
  const nft = openNftClient(libc, options);
  return {
    flows,
    follow: (listener) => followFlows(libc, { files: systemFiles, clock: systemClock }, listener),
    switchOnAccounting: () => switchOnAccounting(new Sysctl(systemFiles), nft),
    ownAddresses,
    interfaces,
    openRefusals: async () => {
      // A socket of its own: when the log cannot start, closing it removes the tables that it added so far.
      const nft = openNftClient(libc, options);
      return refusalKernel(libc, watchingTables.observer, nft, () => nft.close());
    },
    close: () => {
      nft.close();
      flows.close();
    },
  };
}

async function openRuleMeter(options: Omit<MeterOptions, 'kernel'>): Promise<TrafficMeter> {
  const libc = await loadLibc();
  const nft = openNftClient(libc, options);
  const flows = openConntrackClient(libc, options);
  const meter = new RuleMeter({
    ...options,
    kernel: {
      nft,
      flows: {
        forEachTrackedFlow: (...visit) => flows.forEachTrackedFlow(...visit),
        size: () => new Sysctl(systemFiles).read('net/netfilter/nf_conntrack_count') ?? 0,
      },
      ownAddresses,
      interfaces,
      openRefusals: async () => refusalKernel(libc, watchingTables.meter, nft, () => {}),
      close: () => {
        nft.close();
        flows.close();
      },
    },
  });
  try {
    await meter.start();
    return meter;
  } catch (error) {
    meter.close();
    throw error;
  }
}

function refusalKernel(libc: Libc, tablePrefix: string, nft: NftClient, close: () => void): RefusalKernel {
  const options = { clock: systemClock, random: Math.random };
  return { tablePrefix, nft, openLog: (listener) => openPacketLog(libc, options, listener), close };
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
