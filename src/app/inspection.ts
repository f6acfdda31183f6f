import { inspectionHandler } from '../admin/inspection-page.ts';
import { buildInfo } from '../cli/version.ts';
import type { Problems } from '../health/problems.ts';
import type { Handler } from '../http/router.ts';
import { Inspector } from '../inspect/inspector.ts';
import type { Journal } from '../inspect/journal.ts';
import { peerCheck } from '../inspect/peers.ts';
import type { TrafficSource } from '../inspect/traffic.ts';
import { systemClock } from '../lib/clock.ts';
import type { ConfigurationStatus } from '../model/config-file-status.ts';
import type { RootLogger } from '../obs/klog.ts';
import { familyHere } from './inspected-family.ts';
import { nodeReport } from './node-report.ts';
import type { Proxiers } from './proxiers.ts';
import type { Start } from './start.ts';

export interface InspectionInput extends Start {
  readonly proxiers: Proxiers;
  readonly problems: Problems;
  readonly journal: Journal;
  readonly logger: RootLogger;
  /** Undefined without a configuration file. */
  readonly configFile: () => ConfigurationStatus | undefined;
  /** Milliseconds since the Unix epoch. */
  readonly startTime: number;
  readonly traffic: () => Promise<TrafficSource>;
}

/** Answers questions about this process over HTTP. */
export function openInspection(input: InspectionInput): Handler {
  const { options, cluster, mode, nodeName, proxiers, problems, journal, startTime } = input;
  const inspector = new Inspector({
    version: buildInfo(options.version.gitVersion).gitVersion,
    mode: mode.name,
    nodeName,
    startTime,
    families: proxiers.families.map((proxier) => familyHere(proxier, input)),
    problems: () => problems.list(),
    sources: () => cluster.source.status(),
    configFile: input.configFile,
    setAside: () => proxiers.setAside.objects(),
    journal,
    traffic: input.traffic,
    clock: systemClock,
  });
  return inspectionHandler({
    inspector,
    node: () => nodeReport(input),
    log: () => input.logger.recent(),
    admits: peerCheck(options.inspectionFrom),
    clock: systemClock,
  });
}
