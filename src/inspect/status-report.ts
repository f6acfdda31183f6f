import type { Problem } from '../model/problem.ts';
import type { FamilyStatus, ProblemReport } from './api.ts';
import type { FamilyView } from './family-view.ts';

export function familyStatus(view: FamilyView, nodeIP: string, healthy: boolean): FamilyStatus {
  const { activity } = view;
  const { lastSync, lastFailure, lastRepair } = activity;
  return {
    family: view.family,
    healthy,
    initialised: view.isInitialised,
    nodeIP,
    servicePorts: view.plans.size,
    endpoints: view.totalEndpoints,
    serviceCIDRs: view.serviceCIDRs,
    pending: { services: view.pending.services, endpointSlices: view.pending.slices },
    syncs: activity.syncs,
    lastSync: lastSync
      ? {
          time: timeText(lastSync.finishedAt),
          seconds: Math.round(lastSync.durationMs * 1000) / 1e6,
          kind: lastSync.kind,
          changedServicePorts: lastSync.changed,
        }
      : null,
    failures: activity.failures,
    lastFailure: lastFailure ? { time: timeText(lastFailure.at), message: lastFailure.message } : null,
    repairs: activity.repairs,
    lastRepair: lastRepair ? timeText(lastRepair.at) : null,
    lastRepairCause: lastRepair ? { by: lastRepair.by, changes: lastRepair.changes } : null,
  };
}

export function problemReport({ kind, family, since, isOutage, text }: Problem): ProblemReport {
  return {
    kind,
    family: family ?? null,
    since: since === undefined ? null : timeText(since),
    outage: isOutage,
    text,
  };
}

export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
