import { hostname } from 'node:os';
import type { ProxyConfig } from '../config/types.ts';
import { checkFamilies, type FamilySettings, nodePortAddressesProblem } from '../model/config-checks.ts';
import type { Family } from '../model/ip.ts';
import { type LocalDetector, localDetectors } from '../model/local-detector.ts';
import { detectNodeAddresses, type NodeAddresses } from '../model/node-ips.ts';
import {
  expandNodePortAddresses,
  type NodePortAddresses,
  nodePortAddresses,
} from '../model/node-port-addresses.ts';
import type { Logger } from '../obs/log.ts';
import type { NodeStart } from '../sources/node-manager.ts';

/** What the node's own facts and the configuration make of each other; fixed for the life of the process. */
export interface NodeSetup {
  readonly addresses: NodeAddresses;
  /** The families that are served, the primary one first. */
  readonly families: readonly Family[];
  readonly detectors: Readonly<Record<Family, LocalDetector>>;
  readonly nodePorts: Readonly<Record<Family, NodePortAddresses>>;
}

/** The name this node goes by in the cluster. */
export function nodeNameOf(config: ProxyConfig): string {
  const name = (config.hostnameOverride || hostname()).trim().toLowerCase();
  if (name === '') throw new Error('empty hostname is invalid');
  return name;
}

/** Node addresses and the primary family, from the Node object and `bindAddress`. */
export function addressesOf(start: NodeStart, config: ProxyConfig, logger: Logger): NodeAddresses {
  const addresses = detectNodeAddresses(start.nodeIPs, config.bindAddress);
  const nodeIP = addresses.ips[addresses.primary];
  if (addresses.primaryIsLoopback) {
    logger.info("Can't determine this node's IP, assuming loopback; use --bind-address to set it", {
      nodeIP,
    });
  } else {
    logger.info('Successfully retrieved node IP(s)', {
      IPs: start.nodeIPs.length > 0 ? start.nodeIPs : [nodeIP],
    });
  }
  return addresses;
}

/** Chooses families, detectors and node port addresses; throws when the configuration cannot work on this node. */
export function setUpNode(
  config: ProxyConfig,
  start: NodeStart,
  addresses: NodeAddresses,
  supported: ReadonlySet<Family>,
  logger: Logger,
): NodeSetup {
  const { primary, ips } = addresses;
  if (!supported.has(primary)) throw new Error(`no support for primary IP family "${primary}"`);
  const entries = expandNodePortAddresses(config.nodePortAddresses ?? [], ips);
  const families: Family[] = [primary, ...[...supported].filter((family) => family !== primary)];
  logger.info(
    families.length > 1 ? 'kube-proxy running in dual-stack mode' : 'kube-proxy running in single-stack mode',
    {
      ipFamily: primary,
    },
  );
  reportFamilyProblems(familySettings(config, start, entries, primary, families.length > 1), logger);
  const { detectors, problems } = localDetectors({
    mode: config.detectLocalMode,
    clusterCIDRs: config.detectLocal.clusterCIDRs,
    podCIDRs: start.podCIDRs,
    bridgeInterface: config.detectLocal.bridgeInterface,
    interfaceNamePrefix: config.detectLocal.interfaceNamePrefix,
    primary,
  });
  for (const { severity, text } of problems) {
    if (severity === 'error') logger.error(undefined, text);
    else logger.info(text);
  }
  const nodePorts = { IPv4: nodePortAddresses('IPv4', entries), IPv6: nodePortAddresses('IPv6', entries) };
  return { addresses, families, detectors, nodePorts };
}

function familySettings(
  config: ProxyConfig,
  start: NodeStart,
  entries: readonly string[],
  primary: Family,
  dualStack: boolean,
): FamilySettings {
  return {
    primary,
    dualStack,
    detectLocalMode: config.detectLocalMode,
    clusterCIDRs: config.detectLocal.clusterCIDRs,
    podCIDRs: start.podCIDRs,
    nodePortAddresses: entries,
    ipvsExcludeCIDRs: config.ipvs.excludeCIDRs ?? [],
    winkernelSourceVip: config.winkernel.sourceVip,
    healthzBindAddress: config.healthzBindAddress,
    metricsBindAddress: config.metricsBindAddress,
  };
}

function reportFamilyProblems(settings: FamilySettings, logger: Logger): void {
  const open = nodePortAddressesProblem(settings);
  if (open)
    logger.error(undefined, 'Kube-proxy configuration may be incomplete or incorrect', { problem: open });
  const { problems, fatal } = checkFamilies(settings);
  if (fatal !== undefined) throw new Error(fatal);
  for (const problem of problems) {
    logger.error(undefined, 'Kube-proxy configuration may be incomplete or incorrect', { problem });
  }
}
