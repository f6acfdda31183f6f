import type { Backend, ProxyMode } from '../backends/backend.ts';
import type { ProxyConfig } from '../config/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { LocalDetector } from '../model/local-detector.ts';
import type { NodePortAddresses } from '../model/node-port-addresses.ts';
import type { Logger } from '../obs/log.ts';
import type { ProxyMetrics } from '../obs/proxy-metrics.ts';

/** What a mode is told about the node when it makes the backend of one family. */
export interface BackendContext {
  readonly family: Family;
  readonly config: ProxyConfig;
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

/** One proxy mode: where it can run, how to start it, and how to remove all it ever wrote. */
export interface Mode {
  /** Families this node can serve in this mode; throws when it can serve none. */
  supportedFamilies(): Promise<ReadonlySet<Family>>;
  /** Checks the preconditions of the mode in this family; throws the reason when one fails. */
  create(context: BackendContext): Promise<Backend>;
  /** Removes everything this mode, here or upstream, may have left. Nothing there is success. */
  cleanup(logger: Logger): Promise<void>;
}

/** The one place where modes plug in. Each is loaded only when it is used. */
const modes: Partial<Record<ProxyMode, () => Promise<Mode>>> = {
  nftables: async () => (await import('../backends/nftables/mode.ts')).nftablesMode,
};

/** A mode that this version cannot run. */
export class ModeUnavailableError extends Error {
  constructor(mode: string) {
    super(
      `proxy mode ${JSON.stringify(mode)} is not available in this version (available: ${available().join(', ')})`,
    );
    this.name = 'ModeUnavailableError';
  }
}

export async function loadMode(mode: string): Promise<Mode> {
  const load = modes[mode as ProxyMode];
  if (!load) throw new ModeUnavailableError(mode);
  return load();
}

/** Every mode there is, by name. */
export async function allModes(): Promise<ReadonlyMap<string, Mode>> {
  return new Map(await Promise.all(available().map(async (name) => [name, await loadMode(name)] as const)));
}

/** Modes whose rules cannot stay beside those of `mode`. The two that write iptables rules share their chains. */
export async function modesReplacedBy(mode: string): Promise<ReadonlyMap<string, Mode>> {
  const all = await allModes();
  return new Map([...all].filter(([name]) => (name === 'nftables') !== (mode === 'nftables')));
}

function available(): string[] {
  return Object.keys(modes);
}
