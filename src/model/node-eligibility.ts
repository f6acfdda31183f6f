import type { NodeObject } from './objects.ts';

const zoneLabel = 'topology.kubernetes.io/zone';
const autoscalerTaint = 'ToBeDeletedByClusterAutoscaler';

/** Whether load balancers may send new traffic to this node; an unknown node is not eligible. */
export function isNodeEligible(node: NodeObject | undefined): boolean {
  return node !== undefined && !node.deleting && !node.taintKeys.includes(autoscalerTaint);
}

/** The node's zone label; undefined when absent. Policy treats that like an empty label. */
export function zoneOf(node: NodeObject | undefined): string | undefined {
  return node?.labels[zoneLabel];
}
