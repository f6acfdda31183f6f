import type { FastPathStatus } from '../backends/backend.ts';
import type { ConfigurationStatus, LastConfigChange } from '../model/config-file-status.ts';
import type { Problem } from '../model/problem.ts';
import type { SourceStatus } from '../model/source-status.ts';
import type {
  ConfigurationReport,
  FamilyStatus,
  FastPathReport,
  ProblemReport,
  SourcesReport,
} from './api.ts';
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
    fastPath: view.fastPath ? fastPathReport(view.fastPath) : null,
  };
}

function fastPathReport(status: FastPathStatus): FastPathReport {
  const { scope, after, isInUse, reason, isCounting, devices, leftOut } = status;
  return { scope, after, inUse: isInUse, reason: reason ?? null, counting: isCounting, devices, leftOut };
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

export function sourcesReport({ kind, location, watches, errors }: SourceStatus): SourcesReport {
  return {
    kind,
    location,
    watches: watches.map(({ resource, state, since, reason, lastEvent }) => ({
      resource: resource.toLowerCase(),
      state,
      since: timeText(since),
      reason: reason ?? null,
      lastEvent: lastEvent === undefined ? null : timeText(lastEvent),
    })),
    errors: errors.map(({ path, position, reason, since }) => ({
      path,
      position: position === '' ? null : position,
      reason,
      since: timeText(since),
    })),
  };
}

export function configurationReport(file: ConfigurationStatus | undefined): ConfigurationReport | null {
  if (!file) return null;
  const { state, since, reason } = file.onDisk;
  return {
    file: file.path,
    sha256: file.hash,
    readTime: timeText(file.readAt),
    generation: file.inUse.generation,
    generationTime: timeText(file.inUse.since),
    lastChange: lastChangeReport(file.inUse.lastChange),
    onDisk: { state, since: timeText(since), reason: reason ?? null },
  };
}

function lastChangeReport(change: LastConfigChange | undefined): ConfigurationReport['lastChange'] {
  if (!change) return null;
  const { at, outcome, fields, reason } = change;
  return { time: timeText(at), outcome, fields, reason: reason ?? null };
}

export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
