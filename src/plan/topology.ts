import type { Endpoint } from '../model/endpoint.ts';
import type { TopologyMode } from './service-plan.ts';

/** What this node is, as far as policy asks, and which feature gates bear on it. */
export interface PlanContext {
  readonly nodeName: string;
  /** Value of label `topology.kubernetes.io/zone`; empty when the node has none. */
  readonly zone: string;
  /** Feature gate AllowServiceExternalIPs. */
  readonly allowExternalIPs: boolean;
}

/** How far the hints of ready endpoints go; the others neither veto nor enable anything. */
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

/** Hints count only when every ready endpoint has them and at least one of them is for us. */
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
