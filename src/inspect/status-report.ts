import type { Family } from '../model/ip.ts';
import type { FamilyStatus } from './api.ts';
import type { FamilyView } from './family-view.ts';

/** The status of one family. `healthy` is null when the health server is switched off. */
export function familyStatus(view: FamilyView, nodeIP: string, healthy: boolean | null): FamilyStatus {
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
    lastRepair: lastRepair === undefined ? null : timeText(lastRepair),
  };
}

/** The health of each family, from the health server. */
export type FamilyHealth = ReadonlyMap<Family, { readonly healthy: boolean }>;

export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
