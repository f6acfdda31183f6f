import type { Endpoint } from '../model/endpoint.ts';
import { maxStableEndpoints } from '../model/stable-table.ts';
import { isDraining, isUsable } from './endpoint-sets.ts';
import type { ServicePlan } from './service-plan.ts';
import { type PlanContext, surveyHints } from './topology.ts';

/** The inputs and results of a plan that its reasons are derived from. */
export interface Explainable
  extends Omit<
    ServicePlan,
    'internal' | 'external' | 'near' | 'lost' | 'topology' | 'hasAnyEndpoints' | 'externalIPs'
  > {
  readonly context: PlanContext;
  readonly mode: ServicePlan['topology']['mode'];
}

export type Subject = 'internal' | 'external' | 'near' | 'topology';

/** The shortfall of a service port with too many endpoints for a hash, as a phrase. */
export const tooManyToHash = `it has more than ${maxStableEndpoints} endpoints, too many for the hash that the Service asks for; endpoints are chosen as usual`;

/** Why a service port gets no hash though its Service asks for one, as a phrase; undefined where none is missing. */
export function whyNoHash({ port, balance }: Pick<ServicePlan, 'port' | 'balance'>): string | undefined {
  const asked = port.unsupportedBalance;
  if (asked !== undefined) {
    return `the Service asks for ${asked}, which is not possible in this proxy mode; endpoints are chosen as usual`;
  }
  return port.balance === balance ? undefined : tooManyToHash;
}

/** The reason for one decision of a plan, as a phrase. */
export function decisionReason(plan: Explainable, subject: Subject): string {
  if (subject === 'topology') return explainTopology(plan);
  if (subject === 'internal') {
    return explainTraffic(plan, 'internalTrafficPolicy', plan.port.internalPolicyLocal);
  }
  if (subject === 'near') return explainNear(plan);
  if (!plan.externallyAccessible) return 'there is no node port, load balancer IP or external IP';
  return explainTraffic(plan, 'externalTrafficPolicy', plan.port.externalPolicyLocal);
}

function explainTraffic(plan: Explainable, policy: string, isLocal: boolean): string {
  if (!plan.endpoints.some(isUsable)) return explainNothingUsable(plan.endpoints);
  return isLocal
    ? `${policy} is Local${explainLocal(plan)}`
    : `${policy} is Cluster; ${explainCluster(plan)}`;
}

function explainNear(plan: Explainable): string {
  return `externalTrafficPolicy Local applies only to clients elsewhere; ${explainCluster(plan)}`;
}

function explainNothingUsable(endpoints: readonly Endpoint[]): string {
  if (endpoints.length === 0) return 'there are no endpoints';
  return `none of ${count(endpoints.length, 'endpoint')} is ready, or terminating and still serving`;
}

function explainLocal({ endpoints, context }: Explainable): string {
  const here = endpoints.filter(({ isLocal }) => isLocal);
  const ready = here.filter((endpoint) => endpoint.ready).length;
  if (ready > 0) return `; ${count(ready, 'ready endpoint')} on node ${context.nodeName}`;
  const draining = here.filter(isDraining).length;
  const usable = endpoints.filter(isUsable).length;
  const rest =
    draining > 0
      ? `${count(draining, 'terminating endpoint')} there still serving`
      : `${count(usable, 'endpoint')} ${usable === 1 ? 'is' : 'are'} elsewhere`;
  return ` and no endpoint on node ${context.nodeName} is ready; ${rest}`;
}

function explainCluster({ cluster, endpoints, mode, context }: Explainable): string {
  const used = `${cluster.length} of ${count(endpoints.length, 'endpoint')} used`;
  if (!cluster.some(({ ready }) => ready)) return `${used}: none ready, terminating and still serving`;
  if (mode === 'PreferSameNode') return `${used}: ready and hinted for node ${context.nodeName}`;
  if (mode === 'PreferSameZone') return `${used}: ready and hinted for zone ${context.zone}`;
  return `${used}: ready`;
}

function explainTopology({ endpoints, context, usesClusterEndpoints, mode }: Explainable): string {
  if (!usesClusterEndpoints)
    return `only endpoints on node ${context.nodeName} are used, so hints do not apply`;
  const hints = surveyHints(endpoints, context);
  const { ready, withNodeHints, withZoneHints } = hints;
  if (ready === 0) return 'no endpoint is ready, so hints do not apply';
  const findings: string[] = [];
  const nodeName = `node ${context.nodeName}`;
  if (withNodeHints > 0) findings.push(findHints(ready, 'node', withNodeHints, hints.forThisNode, nodeName));
  if (withZoneHints > 0 && mode !== 'PreferSameNode') {
    const zone =
      context.zone === '' ? `the zone of ${nodeName}, which has no zone label` : `zone ${context.zone}`;
    findings.push(findHints(ready, 'zone', withZoneHints, hints.forThisZone, zone));
  }
  if (findings.length === 0) return `${count(ready, 'ready endpoint')} without hints`;
  return mode === 'none' ? `${findings.join('; ')}: hints ignored` : findings.join('; ');
}

function findHints(ready: number, kind: string, hinted: number, hits: number, place: string): string {
  const of = `of ${count(ready, 'ready endpoint')}`;
  return hinted < ready
    ? `${ready - hinted} ${of} without ${kind} hints`
    : `${hits} ${of} hinted for ${place}`;
}

/** Why one endpoint of a plan is used, or not used. */
export function endpointReason(plan: Explainable, endpoint: Endpoint): string {
  const sets = [];
  if (plan.cluster.includes(endpoint)) sets.push('Cluster');
  if (plan.local.includes(endpoint)) sets.push('Local');
  if (sets.length > 0) return `used under policy ${sets.join(' and ')}`;
  if (!isUsable(endpoint)) return endpoint.terminating ? 'terminating and no longer serving' : 'not ready';
  if (!plan.usesClusterEndpoints && !endpoint.isLocal) return `not on node ${plan.context.nodeName}`;
  if (isDraining(endpoint)) return 'terminating, and others are ready';
  return plan.mode === 'PreferSameNode' ? 'hinted for other nodes' : 'hinted for other zones';
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}
