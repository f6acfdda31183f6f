import { hostname } from 'node:os';
import type { InspectionContext, Mode } from '../backends/mode.ts';
import type { Options } from '../cli/options.ts';
import { checkFamilies, type FamilySettings, nodePortAddressesProblem } from '../config/family-checks.ts';
import type { ProxyConfig } from '../config/types.ts';
import type { RestMetrics } from '../kube/rest-metrics.ts';
import { systemClock } from '../lib/clock.ts';
import type { FastPathSettings } from '../model/fast-path.ts';
import type { Family } from '../model/ip.ts';
import { type LocalDetector, localDetectors } from '../model/local-detector.ts';
import { detectNodeAddresses, type NodeAddresses } from '../model/node-ips.ts';
import {
  expandNodePortAddresses,
  type NodePortAddresses,
  nodePortAddresses,
} from '../model/node-port-addresses.ts';
import type { ServiceDefaults } from '../model/service-ports.ts';
import type { Logger } from '../obs/log.ts';
import { NodeManager, type NodeStart } from '../sources/node-manager.ts';
import { type Cluster, openCluster } from './cluster.ts';
import type { Completed } from './complete.ts';

/**
 * How the server, a dry run and kube-proxyctl without a proxy begin: `connectAndLoadNode`, then `describeNode`. What each
 * step finds out is added to the same record.
 */
export interface StartInput {
  readonly options: Options;
  readonly completed: Completed;
  readonly mode: Mode;
  readonly logger: Logger;
}

/** After the first step: the cluster, and its answer about this node. */
export interface Connected extends StartInput {
  readonly cluster: Cluster;
  readonly nodeManager: NodeManager;
  readonly nodeName: string;
  readonly nodeStart: NodeStart;
  readonly addresses: NodeAddresses;
}

/** The part of it that the second step needs. */
type NodeKnown = Pick<Connected, 'completed' | 'nodeStart' | 'addresses' | 'logger'>;

/** What the second step adds. */
interface Described {
  /** The families that are served, the primary one first. */
  readonly families: readonly Family[];
  readonly localDetectors: Readonly<Record<Family, LocalDetector>>;
  readonly nodePortAddresses: Readonly<Record<Family, NodePortAddresses>>;
}

/** After the second step: everything that is known of this node with one configuration. */
export interface Start extends Connected, Described {}

/**
 * Connects to the cluster and loads this node. Throws if the Node is required and does not arrive, and when `signal`
 * ends the wait.
 */
export async function connectAndLoadNode(
  input: StartInput,
  metrics: RestMetrics,
  signal?: AbortSignal,
): Promise<Connected> {
  const { options, completed, logger } = input;
  const { config } = completed;
  const nodeName = nodeNameOf(config);
  const cluster = await openCluster(options, completed, nodeName, metrics, logger);
  const nodeManager = new NodeManager({
    nodeName,
    needsPodCIDRs: needsPodCIDRs(config),
    waits: cluster.waits,
    clock: systemClock,
    logger,
  });
  signal?.addEventListener('abort', () => nodeManager.stop());
  try {
    cluster.source.start(['nodes'], nodeManager);
    const nodeStart = await nodeManager.waitForNode();
    const addresses = addressesOf(nodeStart, config, logger);
    return { ...input, cluster, nodeManager, nodeName, nodeStart, addresses };
  } catch (error) {
    // The caller gets no cluster to stop.
    await cluster.source.stop();
    throw error;
  }
}

/**
 * Chooses the families to serve, of those that are supported, and works out local detectors and node port addresses.
 * Throws when the configuration cannot work on this node.
 */
export function describeNode<Known extends NodeKnown>(
  connected: Known,
  supported: ReadonlySet<Family>,
): Known & Described {
  const { completed, nodeStart, addresses, logger } = connected;
  const { config } = completed;
  const { primary, ips } = addresses;
  if (!supported.has(primary)) throw new Error(`no support for primary IP family "${primary}"`);
  const entries = expandNodePortAddresses(config.nodePortAddresses ?? [], ips);
  const families: Family[] = [primary, ...[...supported].filter((family) => family !== primary)];
  const stack = families.length > 1 ? 'dual' : 'single';
  logger.info(`kube-proxy running in ${stack}-stack mode`, { ipFamily: primary });
  reportFamilyProblems(
    {
      primary,
      dualStack: families.length > 1,
      detectLocalMode: config.detectLocalMode,
      clusterCIDRs: config.detectLocal.clusterCIDRs,
      podCIDRs: nodeStart.podCIDRs,
      nodePortAddresses: entries,
      ipvsExcludeCIDRs: config.ipvs.excludeCIDRs ?? [],
      winkernelSourceVip: config.winkernel.sourceVip,
      healthzBindAddress: config.healthzBindAddress,
      metricsBindAddress: config.metricsBindAddress,
    },
    logger,
  );
  return {
    ...connected,
    families,
    localDetectors: detectorsOf(connected),
    nodePortAddresses: {
      IPv4: nodePortAddresses('IPv4', entries),
      IPv6: nodePortAddresses('IPv6', entries),
    },
  };
}

/** What a mode needs to know of this node to write or inspect the rules of one family. */
export function modeContext(
  family: Family,
  start: NodeKnown & Described & Partial<Pick<Start, 'options'>>,
): InspectionContext {
  const { config, gates } = start.completed;
  return {
    family,
    config,
    gateEnabled: (gate) => gates.enabled(gate),
    nodeIP: start.addresses.ips[family],
    nodePortAddresses: start.nodePortAddresses[family],
    localDetector: start.localDetectors[family],
    fastPath: fastPathOf(start.options),
    logger: start.logger.named(family),
    clock: systemClock,
  };
}

function fastPathOf(options: Options | undefined): FastPathSettings | undefined {
  if (!options || options.fastPath === 'off') return undefined;
  return { scope: options.fastPath, after: options.fastPathAfter };
}

/** What Services are offered in this mode, and what holds for those that ask for nothing. */
export function serviceDefaults({ mode, options }: Pick<Start, 'mode' | 'options'>): ServiceDefaults {
  return {
    resetDeparted: mode.resetsDeparted ? options.resetDeparted : 'impossible',
    hashes: mode.hashes,
  };
}

export function needsPodCIDRs({ detectLocalMode }: ProxyConfig): boolean {
  return detectLocalMode === 'NodeCIDR';
}

/** The name of this node in the cluster. */
function nodeNameOf(config: ProxyConfig): string {
  const name = (config.hostnameOverride || hostname()).trim().toLowerCase();
  if (name === '') throw new Error('empty hostname is invalid');
  return name;
}

/** Node addresses and the primary family, from the Node object and `bindAddress`. */
function addressesOf({ nodeIPs }: NodeStart, config: ProxyConfig, logger: Logger): NodeAddresses {
  const addresses = detectNodeAddresses(nodeIPs, config.bindAddress);
  const nodeIP = addresses.ips[addresses.primary];
  if (addresses.primaryIsLoopback) {
    logger.info("Can't determine this node's IP, assuming loopback; use --bind-address to set it", {
      nodeIP,
    });
  } else {
    logger.info('Successfully retrieved node IP(s)', { IPs: nodeIPs.length > 0 ? nodeIPs : [nodeIP] });
  }
  return addresses;
}

function detectorsOf({ completed, nodeStart, addresses, logger }: NodeKnown): Start['localDetectors'] {
  const { detectLocalMode, detectLocal } = completed.config;
  const { detectors, problems } = localDetectors({
    mode: detectLocalMode,
    clusterCIDRs: detectLocal.clusterCIDRs,
    podCIDRs: nodeStart.podCIDRs,
    bridgeInterface: detectLocal.bridgeInterface,
    interfaceNamePrefix: detectLocal.interfaceNamePrefix,
    primary: addresses.primary,
  });
  for (const { severity, text } of problems) {
    if (severity === 'error') logger.error(undefined, text);
    else logger.info(text);
  }
  return detectors;
}

/** Throws the problem that makes a start pointless, and logs the others. */
function reportFamilyProblems(settings: FamilySettings, logger: Logger): void {
  const warn = (problem: string) =>
    logger.error(undefined, 'Kube-proxy configuration may be incomplete or incorrect', { problem });
  const open = nodePortAddressesProblem(settings);
  if (open) warn(open);
  const { problems, fatal } = checkFamilies(settings);
  if (fatal !== undefined) throw new Error(fatal);
  for (const problem of problems) warn(problem);
}
