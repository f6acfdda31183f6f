import type { NodeObject } from './objects.ts';

const zoneLabel = 'topology.kubernetes.io/zone';
const autoscalerTaint = 'ToBeDeletedByClusterAutoscaler';

/** Whether load balancers may send this node new traffic; a node nobody knows is not eligible. */
export function isNodeEligible(node: NodeObject | undefined): boolean {
  return node !== undefined && !node.deleting && !node.taintKeys.includes(autoscalerTaint);
}

/** The node's zone label; undefined when it has none, which policy treats like an empty one. */
export function zoneOf(node: NodeObject | undefined): string | undefined {
  return node?.labels[zoneLabel];
}
