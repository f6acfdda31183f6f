import { networkInterfaces } from 'node:os';
import type { NodeForwarder } from '../../forwarder/open.ts';
import { openNodeForwarder } from '../../forwarder/open.ts';
import { PortPool } from '../../forwarder/port-pool.ts';
import { openKernel } from '../../kernel/open.ts';
import { hasIPv6 } from '../../kernel/probe.ts';
import { runProgram } from '../../kernel/program.ts';
import { systemFiles } from '../../kernel/system-files.ts';
import { systemClock } from '../../lib/clock.ts';
import { toMillis } from '../../lib/duration.ts';
import { type Family, families } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { MetricGroup } from '../../obs/proxy-metrics.ts';
import type { Backend } from '../backend.ts';
import type { Inspection } from '../inspection.ts';
import type { BackendContext, InspectionContext, Mode } from '../mode.ts';
import type { PacketRules } from '../packet-rules.ts';
import { SharedByFamilies } from '../shared-by-families.ts';
import { tryCapture } from './capture.ts';
import { DirectBackend } from './direct-backend.ts';
import { checkBindAddress, hostAddress } from './host-address.ts';
import { type Running, UserspaceInspection } from './inspection/userspace-inspection.ts';
import { removeOldChains } from './old-chains.ts';
import { type UserspaceOptions, userspaceOptions } from './options.ts';
import { packetRules } from './packet-rules.ts';
import { PortalBackend } from './portal-backend.ts';
import { removePortals } from './portals/portals.ts';
import { ProxySockets } from './proxy-sockets.ts';
import type { UserspaceSettings } from './settings.ts';
import { showTraffic } from './traffic-metrics.ts';

/** Milliseconds for each attempt to reach an endpoint. */
const dialTimeouts = [250, 500, 1_000, 2_000];

/** What the families have in common. */
interface Shared {
  readonly node: NodeForwarder;
  readonly pool: PortPool;
}

/**
 * Userspace mode: this process accepts connections and makes others to endpoints. Needs nothing of the kernel; with
 * nftables and the privilege to use it, packets to service addresses are sent here, without them it listens where it
 * may.
 */
class UserspaceMode implements Mode {
  readonly name = 'userspace';
  readonly toleratesConntrackFailure = true;
  readonly #shared = new SharedByFamilies<Shared>();
  readonly #running = new Map<Family, Running>();

  metricGroups(): readonly MetricGroup[] {
    return ['repairs', 'proxied traffic'];
  }

  /** The configuration has no scheduler field for this mode alone, so it takes the one of ipvs mode. */
  packetRules({ config }: Pick<InspectionContext, 'config'>): PacketRules {
    return packetRules(config.ipvs.scheduler);
  }

  async supportedFamilies(): Promise<ReadonlySet<Family>> {
    return new Set<Family>(hasIPv6(systemFiles) ? ['IPv4', 'IPv6'] : ['IPv4']);
  }

  /** Throws when the configuration cannot be used. */
  async create(context: BackendContext): Promise<Backend> {
    checkBindAddress(context.config.bindAddress);
    const options = userspaceOptions(context.config);
    const { node, pool } = await this.#shared.acquire(() => openShared(options, context.logger));
    try {
      showTraffic(node.forwarder, context.metrics);
      const backend = await this.#createBackend(context, options, node, pool);
      this.#running.set(context.family, { backend, forwarder: node.forwarder });
      return backend;
    } catch (error) {
      this.#release(context.family);
      throw error;
    }
  }

  async inspect(context: InspectionContext): Promise<Inspection> {
    checkBindAddress(context.config.bindAddress);
    const settings = settingsOf(context, userspaceOptions(context.config));
    return new UserspaceInspection({
      settings,
      running: () => this.#running.get(context.family),
      kernel: await tryCapture(settings, context),
    });
  }

  /** A node on which nftables cannot be reached has no portals of ours. */
  async cleanup(logger: Logger): Promise<void> {
    const kernel = await openKernel(systemClock).catch((error: unknown) => {
      logger.v(2).info('Cannot reach nftables; nothing to remove', { error });
      return undefined;
    });
    const removals = await Promise.allSettled([
      ...(kernel ? families.map((family) => removePortals(kernel.nft, family)) : []),
      removeOldChains({ run: runProgram, clock: systemClock, logger }),
    ]);
    kernel?.close();
    for (const removal of removals) if (removal.status === 'rejected') throw removal.reason;
  }

  async #createBackend(
    context: BackendContext,
    options: UserspaceOptions,
    node: NodeForwarder,
    pool: PortPool,
  ): Promise<DirectBackend | PortalBackend> {
    const { family, logger, clock, requestFullSync, metrics } = context;
    const settings = settingsOf(context, options);
    const sockets = new ProxySockets({ forwarder: node.forwarder, pool, choice: options.choice });
    const captured = await tryCapture(settings, context);
    const common = { settings, sockets, logger, clock, requestFullSync };
    const onClose = () => {
      captured.close();
      this.#release(family);
    };
    if ('reason' in captured) {
      const { reason, addresses } = captured;
      return new DirectBackend({ ...common, reason, addresses, onClose });
    }
    return new PortalBackend({ ...common, kernel: captured, claim: node.claim, metrics, onClose });
  }

  /** What the families have in common goes with the last of them. */
  #release(family: Family): void {
    this.#running.delete(family);
    void this.#shared.release(({ node }) => node.forwarder.close());
  }
}

export const userspaceMode = new UserspaceMode();

async function openShared({ portRange, udpIdleMs }: UserspaceOptions, logger: Logger): Promise<Shared> {
  const node = await openNodeForwarder({
    dialTimeouts,
    udpIdleMs,
    clock: systemClock,
    report: ({ problem, detail, times }) => logger.info(problem, { detail, times }),
  });
  if (node.problem !== undefined) logger.info(node.problem);
  logger.info('Connection limits', node.room);
  return { node, pool: new PortPool(portRange, Math.random) };
}

function settingsOf(context: InspectionContext, options: UserspaceOptions): UserspaceSettings {
  const { family, config, nodeIP, nodePortAddresses, localDetector } = context;
  const hostIP = hostAddress({
    family,
    bindAddress: config.bindAddress,
    nodeIP,
    interfaces: networkInterfaces(),
    files: systemFiles,
  });
  return {
    family,
    hostIP,
    nodeIP,
    localDetector,
    nodePortAddresses,
    portRange: options.portRange,
    choice: options.choice,
    retryMs: toMillis(config.syncPeriod),
  };
}
