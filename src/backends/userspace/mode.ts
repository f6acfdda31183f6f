import { networkInterfaces } from 'node:os';
import type { NodeForwarder } from '../../forwarder/open.ts';
import { openNodeForwarder } from '../../forwarder/open.ts';
import { PortPool } from '../../forwarder/port-pool.ts';
import type { TableRef } from '../../kernel/nft/objects.ts';
import { hasIPv6 } from '../../kernel/probe.ts';
import { systemFiles } from '../../kernel/system-files.ts';
import { systemClock } from '../../lib/clock.ts';
import { toMillis } from '../../lib/duration.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { MetricGroup } from '../../obs/proxy-metrics.ts';
import { nodePortSource } from '../address-watch.ts';
import type { Backend } from '../backend.ts';
import { chainLeftovers } from '../chain-leftovers.ts';
import { SyncEngine } from '../engine.ts';
import type { Inspection } from '../inspection.ts';
import { joined } from '../leftovers.ts';
import type {
  BackendContext,
  ForwardedConnections,
  ForwardedPort,
  InspectionContext,
  Mode,
} from '../mode.ts';
import type { PacketRules } from '../packet-rules.ts';
import { SharedByFamilies } from '../shared-by-families.ts';
import { tableLeftovers } from '../table-leftovers.ts';
import { type Captured, tryCapture, type Uncaptured } from './capture.ts';
import { DirectDriver, listenableAddresses } from './direct-driver.ts';
import { forwardedPorts } from './forwarded-ports.ts';
import { checkBindAddress, hostAddress } from './host-address.ts';
import { type Running, UserspaceInspection } from './inspection/userspace-inspection.ts';
import { isOldChain } from './old-chains.ts';
import { type UserspaceOptions, userspaceOptions } from './options.ts';
import { packetRules } from './packet-rules.ts';
import { PortalDriver } from './portal-driver.ts';
import { portalTable } from './portals/layout.ts';
import { ProxySockets, servicePortOf } from './proxy-sockets.ts';
import type { UserspaceSettings } from './settings.ts';
import { showTraffic } from './traffic-metrics.ts';

/** Milliseconds for each attempt to reach an endpoint. */
const dialTimeouts = [250, 500, 1_000, 2_000];

/** What the families share. */
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
  readonly hashes = true;
  readonly toleratesConntrackFailure = true;
  readonly servesInProcess = true;
  readonly rewritesWithNat = true;
  readonly leftovers = joined(tableLeftovers(portalTable), chainLeftovers(isOldChain));
  readonly #shared = new SharedByFamilies<Shared>();
  readonly #running = new Map<Family, Running>();

  holdsConnections(): boolean {
    return true;
  }

  async forwarded(): Promise<readonly ForwardedPort[]> {
    // The families share the forwarder.
    const [running] = this.#running.values();
    return running ? forwardedPorts(await running.forwarder.traffic()) : [];
  }

  async connections(): Promise<ForwardedConnections> {
    const [running] = this.#running.values();
    if (!running) return { startsOver: true, connections: [] };
    const { startsOver, connections } = await running.forwarder.connections();
    const ofPorts = connections.flatMap(({ service, client, endpoint }) => {
      const port = servicePortOf(service);
      return port ? [{ ...port, client, endpoint }] : [];
    });
    return { startsOver, connections: ofPorts };
  }

  tablesOf(family: Family): readonly TableRef[] {
    return [portalTable(family)];
  }

  metricGroups(): readonly MetricGroup[] {
    return ['repairs', 'proxied traffic'];
  }

  /** The configuration has no scheduler field for this mode alone, so it takes the one of ipvs mode. */
  packetRules({ family, config }: Pick<InspectionContext, 'family' | 'config'>): PacketRules {
    const direct = () => {
      const driver = this.#running.get(family)?.driver;
      return driver instanceof DirectDriver ? { reason: driver.reason, places: driver.places() } : undefined;
    };
    const keepsSource = () => {
      const driver = this.#running.get(family)?.driver;
      return driver === undefined || (driver instanceof PortalDriver && driver.keepsSource);
    };
    return packetRules(config.ipvs.scheduler, direct, keepsSource);
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
      return await this.#engine(context, options, node, pool);
    } catch (error) {
      this.#release(context.family);
      throw error;
    }
  }

  async inspect(context: InspectionContext): Promise<Inspection> {
    checkBindAddress(context.config.bindAddress);
    const wished = settingsOf(context, userspaceOptions(context.config));
    const kernel = await tryCapture(wished, context);
    const running = () => this.#running.get(context.family);
    return new UserspaceInspection({ settings: asPossible(wished, kernel), running, kernel });
  }

  async #engine(
    context: BackendContext,
    options: UserspaceOptions,
    { forwarder, claim }: NodeForwarder,
    pool: PortPool,
  ): Promise<Backend> {
    const { family, config, logger, clock, budget, metrics, requestSync } = context;
    const wished = settingsOf(context, options);
    const sockets = new ProxySockets({ forwarder, pool, choice: options.choice });
    const captured = await tryCapture(wished, context);
    const settings = asPossible(wished, captured);
    const onClose = () => {
      captured.close();
      this.#release(family);
    };
    const parts = { settings, sockets, logger, clock, onClose };
    const retryMs = toMillis(config.minSyncPeriod);
    const common = { family, retryMs, budget, metrics, logger, clock, requestSync };
    if ('reason' in captured) {
      const driver = new DirectDriver({ ...parts, reason: captured.reason });
      this.#running.set(family, { driver, forwarder });
      const addresses = listenableAddresses(captured.addresses, family);
      // No packet is rewritten, so conntrack has no stale entries.
      return new SyncEngine({ ...common, driver, addresses, flows: 'none' });
    }
    const { sourceObstacle: reason } = captured;
    if (reason !== undefined) {
      logger.info('Endpoints see the address of this node instead of the address of clients', { reason });
    }
    const driver = new PortalDriver({ ...parts, kernel: captured, claim });
    this.#running.set(family, { driver, forwarder });
    const { flows } = driver;
    const source = captured.addresses;
    // Ports are held at the node's addresses also where node ports are served at all of them.
    const addresses = { source, ...nodePortSource(source, settings.nodePortAddresses) };
    return new SyncEngine({ ...common, driver, addresses, flows, usesServiceCIDRs: true });
  }

  /** Releases what the families share, with the last of them. */
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
    keepsSource: true,
    masqueradeAll: config.linux.masqueradeAll,
  };
}

/** Clients' addresses are kept only if packets are captured and nothing prevents it. */
function asPossible(settings: UserspaceSettings, captured: Captured | Uncaptured): UserspaceSettings {
  return { ...settings, keepsSource: 'sourceObstacle' in captured && captured.sourceObstacle === undefined };
}
