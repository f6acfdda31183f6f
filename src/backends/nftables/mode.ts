import type { TableRef } from '../../kernel/nft/objects.ts';
import { type KernelInterfaces, openKernel } from '../../kernel/open.ts';
import { Sysctl } from '../../kernel/sysctl.ts';
import { systemFiles } from '../../kernel/system-files.ts';
import type { Clock } from '../../lib/clock.ts';
import { toMillis } from '../../lib/duration.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { Sample } from '../../obs/metrics.ts';
import type { MetricGroup } from '../../obs/proxy-metrics.ts';
import { nodePortSource } from '../address-watch.ts';
import type { Backend } from '../backend.ts';
import { SyncEngine } from '../engine.ts';
import type { Inspection } from '../inspection.ts';
import { type BackendContext, defaultMasqueradeBit, type InspectionContext, type Mode } from '../mode.ts';
import type { PacketRules } from '../packet-rules.ts';
import { SharedByFamilies } from '../shared-by-families.ts';
import { tableLeftovers } from '../table-leftovers.ts';
import { NftablesDriver } from './driver.ts';
import { NftablesInspection } from './inspection.ts';
import { tableOf } from './layout.ts';
import { readLoopbackRejects } from './loopback-counters.ts';
import { LoopbackProxy } from './loopback-proxy.ts';
import { packetRules } from './packet-rules.ts';
import { availableFamilies, checkKernelVersion, checkRuleset } from './preconditions.ts';
import type { NftablesSettings } from './settings.ts';

/** How long a scrape waits for the kernel's counters of one family. */
const scrapeLimitMs = 2_000;

/** What one backend uses. */
interface User {
  readonly family: Family;
  readonly kernel: KernelInterfaces;
}

/**
 * nftables mode. Both families share the sockets, so that neither family's watch reports what the other one writes.
 */
class NftablesMode implements Mode {
  readonly name = 'nftables';
  readonly hashes = true;
  readonly isTraceable = true;
  readonly rewritesWithNat = true;
  readonly resetsDeparted = true;
  readonly hasFastPath = true;
  readonly leftovers = tableLeftovers(tableOf);
  readonly #kernel = new SharedByFamilies<KernelInterfaces>();
  /** One per backend. A family has two while one replaces the other. */
  readonly #users = new Set<User>();
  /** Those that serve node ports on loopback addresses in this process. */
  readonly #loopback = new Map<Family, LoopbackProxy>();

  holdsConnections(context: InspectionContext): boolean {
    return servesLoopback(settingsOf(context));
  }

  tablesOf(family: Family): readonly TableRef[] {
    return [tableOf(family)];
  }

  metricGroups(gateEnabled: (gate: string) => boolean): readonly MetricGroup[] {
    const groups: MetricGroup[] = ['partial syncs', 'nftables transactions', 'repairs'];
    return handlesLocalhost(gateEnabled) ? [...groups, 'nftables localhost node ports'] : groups;
  }

  packetRules({ gateEnabled }: Pick<InspectionContext, 'gateEnabled'>): PacketRules {
    return packetRules(handlesLocalhost(gateEnabled));
  }

  async supportedFamilies(): Promise<ReadonlySet<Family>> {
    return availableFamilies(systemFiles);
  }

  /** Throws the reason when this node cannot run the mode. */
  async create(context: BackendContext): Promise<Backend> {
    const { family, config, metrics, logger, clock } = context;
    const settings = settingsOf(context);
    const user = await this.#acquire(family, clock, logger);
    const { kernel } = user;
    try {
      checkKernelVersion(systemFiles, process.env);
      await checkRuleset(kernel.nft, settings, systemFiles);
    } catch (error) {
      await this.#release(user);
      throw error;
    }
    metrics.localhostNodePortRejected.readFrom(() => this.#rejectSamples(clock));
    const loopback = servesLoopback(settings)
      ? new LoopbackProxy({ family, metrics, logger, clock, random: Math.random })
      : undefined;
    if (loopback) this.#loopback.set(family, loopback);
    const onClose = () => {
      if (this.#loopback.get(family) === loopback) this.#loopback.delete(family);
      return this.#release(user);
    };
    const client = kernel.nft;
    const fastPath = { links: kernel.links, isCounting };
    return new SyncEngine({
      family,
      driver: new NftablesDriver({ settings, client, loopback, fastPath, metrics, logger, clock, onClose }),
      usesServiceCIDRs: true,
      addresses: nodePortSource(kernel.addresses, settings.nodePortAddresses),
      retryMs: toMillis(config.minSyncPeriod),
      budget: context.budget,
      metrics,
      logger,
      clock,
      requestSync: context.requestSync,
    });
  }

  /** Uses sockets of its own, so that it never delays a sync. */
  async inspect(context: InspectionContext): Promise<Inspection> {
    const { clock, logger } = context;
    return new NftablesInspection({
      settings: settingsOf(context),
      kernel: await openKernel(clock, logger),
      clock,
      loopback: () => this.#loopback.get(context.family),
    });
  }

  async #acquire(family: Family, clock: Clock, logger: Logger): Promise<User> {
    try {
      const kernel = await this.#kernel.acquire(() => openKernel(clock, logger));
      const user = { family, kernel };
      this.#users.add(user);
      return user;
    } catch (error) {
      throw new Error(`failed to create netlink adapter: ${messageOf(error)}`, { cause: error });
    }
  }

  async #release(user: User): Promise<void> {
    this.#users.delete(user);
    await this.#kernel.release((kernel) => kernel.close());
  }

  async #rejectSamples(clock: Clock): Promise<Sample[]> {
    const kernels = new Map([...this.#users].map(({ family, kernel }) => [family, kernel]));
    const samples = [...kernels].map(async ([family, { nft }]) => {
      const rejects = await within(scrapeLimitMs, clock, readLoopbackRejects(nft, family), new Map());
      return [...rejects].map(([protocol, packets]) => ({
        labels: { ip_family: family, protocol },
        value: Number(packets),
      }));
    });
    return (await Promise.all(samples)).flat();
  }
}

export const nftablesMode = new NftablesMode();

/** Whether the kernel counts the packets of new connections; undefined when it does not say. */
function isCounting(): boolean | undefined {
  const value = new Sysctl(systemFiles).read('net/netfilter/nf_conntrack_acct');
  return value === undefined ? undefined : value !== 0;
}

/** Connections to node ports at loopback addresses are proxied or rejected, and counted. */
function handlesLocalhost(gateEnabled: (gate: string) => boolean): boolean {
  return gateEnabled('KubeProxyNFTablesLocalhostNodePorts');
}

/** Whether this process proxies connections to node ports at loopback addresses. */
function servesLoopback({ localhostNodePorts, nodePortAddresses }: NftablesSettings): boolean {
  return localhostNodePorts && nodePortAddresses.explicitLoopback;
}

function settingsOf(context: InspectionContext): NftablesSettings {
  const { family, config, nodeIP, nodePortAddresses, localDetector } = context;
  return {
    family,
    masqueradeBit: config.nftables.masqueradeBit ?? defaultMasqueradeBit,
    masqueradeAll: config.linux.masqueradeAll,
    localDetector,
    nodePortAddresses,
    nodeIP,
    localhostNodePorts: handlesLocalhost(context.gateEnabled),
    fastPath: context.fastPath,
  };
}

/** Resolves to the promise's value, or to `otherwise` when it takes too long. */
function within<T>(ms: number, clock: Clock, promise: Promise<T>, otherwise: T): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(() => resolve(otherwise), ms);
    promise.then(resolve, reject).finally(() => timer.cancel());
  });
}
