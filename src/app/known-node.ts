import type { Options } from '../cli/options.ts';
import type { RestMetrics } from '../kube/rest-metrics.ts';
import { systemClock } from '../lib/clock.ts';
import type { NodeAddresses } from '../model/node-ips.ts';
import type { Logger } from '../obs/log.ts';
import { NodeManager, type NodeStart } from '../sources/node-manager.ts';
import { type Cluster, openCluster } from './cluster.ts';
import type { Completed } from './complete.ts';
import { addressesOf, nodeNameOf } from './node-setup.ts';

/** This node as the cluster knows it, and the cluster. */
export interface KnownNode {
  readonly nodeName: string;
  readonly cluster: Cluster;
  readonly node: NodeManager;
  readonly start: NodeStart;
  readonly addresses: NodeAddresses;
}

/** Connects to the cluster and waits for what it says about this node; throws when that cannot be done without. */
export async function meetNode(
  options: Options,
  { config }: Completed,
  metrics: RestMetrics,
  logger: Logger,
): Promise<KnownNode> {
  const nodeName = nodeNameOf(config);
  const cluster = await openCluster(options, config, nodeName, metrics, logger);
  const node = new NodeManager({
    nodeName,
    needsPodCIDRs: config.detectLocalMode === 'NodeCIDR',
    waits: cluster.waits,
    clock: systemClock,
    logger,
  });
  try {
    cluster.source.start(['nodes'], node);
    const start = await node.waitForNode();
    return { nodeName, cluster, node, start, addresses: addressesOf(start, config, logger) };
  } catch (error) {
    // Nobody else has it to stop it, and it would go on for ever.
    await cluster.source.stop();
    throw error;
  }
}
