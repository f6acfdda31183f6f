import type { Endpoint } from '../model/endpoint.ts';
import type { TopologyMode } from './service-plan.ts';

/** The facts about this node, and the feature gates, that policy depends on. */
export interface PlanContext {
  readonly nodeName: string;
  /** Value of label `topology.kubernetes.io/zone`; empty when the node has none. */
  readonly zone: string;
  /** Feature gate AllowServiceExternalIPs. */
  readonly allowExternalIPs: boolean;
}

/** How many ready endpoints have hints, and how many are hinted for us. Other endpoints do not count. */
export interface HintSurvey {
  readonly ready: number;
  readonly withNodeHints: number;
  readonly forThisNode: number;
  readonly withZoneHints: number;
  readonly forThisZone: number;
}

export function surveyHints(endpoints: readonly Endpoint[], context: PlanContext): HintSurvey {
  const survey = { ready: 0, withNodeHints: 0, forThisNode: 0, withZoneHints: 0, forThisZone: 0 };
  for (const endpoint of endpoints) {
    if (!endpoint.ready) continue;
    survey.ready++;
    if (endpoint.nodeHints) survey.withNodeHints++;
    if (endpoint.zoneHints) survey.withZoneHints++;
    if (isForNode(endpoint, context)) survey.forThisNode++;
    if (isForZone(endpoint, context)) survey.forThisZone++;
  }
  return survey;
}

/** Hints are followed only when every ready endpoint has them and at least one is for this node or zone. */
export function topologyModeOf(survey: HintSurvey): TopologyMode {
  if (survey.forThisNode > 0 && survey.withNodeHints === survey.ready) return 'PreferSameNode';
  if (survey.forThisZone > 0 && survey.withZoneHints === survey.ready) return 'PreferSameZone';
  return 'none';
}

export function isForNode(endpoint: Endpoint, { nodeName }: PlanContext): boolean {
  return endpoint.nodeHints?.includes(nodeName) ?? false;
}

export function isForZone(endpoint: Endpoint, { zone }: PlanContext): boolean {
  return zone !== '' && (endpoint.zoneHints?.includes(zone) ?? false);
}
