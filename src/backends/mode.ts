import type { ProxyConfig } from '../config/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { LocalDetector } from '../model/local-detector.ts';
import type { NodePortAddresses } from '../model/node-port-addresses.ts';
import type { Logger } from '../obs/log.ts';
import type { ProxyMetrics } from '../obs/proxy-metrics.ts';
import type { Backend } from './backend.ts';
import type { Inspection } from './inspection.ts';

/** What a mode is told about the node when it makes the backend of one family. */
export interface BackendContext {
  readonly family: Family;
  readonly config: Omit<ProxyConfig, 'mode'>;
  readonly gateEnabled: (gate: string) => boolean;
  readonly nodeIP: string;
  readonly nodePortAddresses: NodePortAddresses;
  readonly localDetector: LocalDetector;
  readonly metrics: ProxyMetrics;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called when the kernel no longer holds what was written: everything is then synced again at once. */
  readonly requestFullSync: () => void;
}

/** What looking takes: everything but the means to report and to ask for syncs. */
export type InspectionContext = Omit<BackendContext, 'metrics' | 'requestFullSync'>;

/** One proxy mode: where it can run, how to start it, and how to remove all it ever wrote. */
export interface Mode {
  /** Families this node can serve in this mode; logs why one cannot be, throws when none can. */
  supportedFamilies(logger: Logger): Promise<ReadonlySet<Family>>;
  /** Checks the preconditions of the mode in this family; throws the reason when one fails. */
  create(context: BackendContext): Promise<Backend>;
  /** Opens what it takes to look at this mode's state in this family. Writes nothing, needs no backend to run. */
  inspect(context: InspectionContext): Promise<Inspection>;
  /** Removes everything this mode, here or upstream, may have left. Nothing there is success. */
  cleanup(logger: Logger): Promise<void>;
}
