import type { Packet } from '../backends/inspection.ts';
import type { Frontend } from '../plan/frontend.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import { rangeOfNode } from '../plan/source-ranges.ts';
import { isInRange, type NodeFacts } from './node-facts.ts';
import type { Outcome } from './outcome.ts';

/** Only sources in the service's ranges may reach it. */
export function isGuarded({ sourceRanges }: Frontend): boolean {
  return sourceRanges.length > 0;
}

/** Why the source may reach a guarded address; undefined when it may not. */
export function admission(
  { port }: ServicePlan,
  { source }: Packet,
  { nodeIP }: NodeFacts,
): string | undefined {
  const range = port.sourceRanges.find((text) => isInRange(source, text));
  if (range !== undefined) return `Source ${source} is in the admitted range ${range}.`;
  const ofNode = rangeOfNode(port, nodeIP);
  if (ofNode === undefined || !port.loadBalancerVIPs.includes(source)) return undefined;
  return `Source ${source} is the balancer's own address, which this node may use since ${nodeIP} is in the admitted range ${ofNode}.`;
}

/** What becomes of a source that may not. */
export function notAdmitted({ port }: ServicePlan, { source }: Packet): Outcome {
  const ranges = port.sourceRanges.join(', ');
  return { action: 'drop', reasons: [`Source ${source} is in none of the admitted ranges (${ranges}).`] };
}
