import type { NodeObject } from './objects.ts';
import type { Problem } from './problem.ts';

const zoneLabel = 'topology.kubernetes.io/zone';
const autoscalerTaint = 'ToBeDeletedByClusterAutoscaler';

/** Whether load balancers may send new traffic to this node; an unknown node is not eligible. */
export function isNodeEligible(node: NodeObject | undefined): boolean {
  return node !== undefined && !node.deleting && !node.taintKeys.includes(autoscalerTaint);
}

/** Why /healthz keeps load balancers away from a proxy that works, if it does. */
export function nodeProblems(node: NodeObject | undefined): Problem[] {
  if (isNodeEligible(node)) return [];
  const state = node
    ? node.deleting
      ? 'the Node object is being deleted'
      : `the Node object has the taint ${autoscalerTaint}`
    : 'the Node object of this node is not known';
  const text = `${state}, so /healthz answers 503 and load balancers send nothing new here`;
  return [{ kind: 'NodeNotEligible', isOutage: false, text }];
}

/** The node's zone label; undefined when absent. Policy treats that like an empty label. */
export function zoneOf(node: NodeObject | undefined): string | undefined {
  return node?.labels[zoneLabel];
}
