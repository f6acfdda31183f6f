import type { ProxyConfig } from '../config/types.ts';
import type { TableRef } from '../kernel/nft/objects.ts';
import type { Clock } from '../lib/clock.ts';
import type { FastPathSettings } from '../model/fast-path.ts';
import type { Family } from '../model/ip.ts';
import type { LocalDetector } from '../model/local-detector.ts';
import type { NodePortAddresses } from '../model/node-port-addresses.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';
import type { Logger } from '../obs/log.ts';
import type { MetricGroup, ProxyMetrics } from '../obs/proxy-metrics.ts';
import type { Backend } from './backend.ts';
import type { Inspection } from './inspection.ts';
import type { LeftoverSource } from './leftovers.ts';
import type { PacketRules } from './packet-rules.ts';
import type { RepairBudget } from './repair-budget.ts';

/** Everything that a mode needs to create the backend of one family. */
export interface BackendContext {
  readonly family: Family;
  readonly config: Omit<ProxyConfig, 'mode'>;
  readonly gateEnabled: (gate: string) => boolean;
  readonly nodeIP: string;
  readonly nodePortAddresses: NodePortAddresses;
  readonly localDetector: LocalDetector;
  /** Which connections skip the rules; modes without `hasFastPath` ignore it. */
  readonly fastPath?: FastPathSettings | undefined;
  readonly metrics: ProxyMetrics;
  /** Limits what repairs cost in all families together. */
  readonly budget: RepairBudget;
  readonly logger: Logger;
  readonly clock: Clock;
  /** The backend calls it when the kernel no longer holds what is wanted. A sync follows at once. */
  readonly requestSync: () => void;
}

/** Everything that a mode needs to inspect the kernel. */
export type InspectionContext = Omit<BackendContext, 'metrics' | 'budget' | 'requestSync'>;

/** Connections that the process of the proxy forwarded. `in` means from clients to endpoints. */
export interface ForwardedVolume {
  readonly connections: number;
  readonly open: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** What the process forwarded for one service port. */
export interface ForwardedPort extends ForwardedVolume {
  readonly family: Family;
  readonly key: string;
  /** Connections that found no endpoint. */
  readonly unserved: number;
  readonly endpoints: readonly (ForwardedVolume & {
    readonly endpoint: string;
    readonly dialFailures: number;
  })[];
}

/** Which connections through the process got which endpoint. */
export interface ForwardedConnections {
  /** Earlier reports are incomplete; this one has all connections that are open. */
  readonly startsOver: boolean;
  readonly connections: readonly {
    readonly family: Family;
    readonly key: string;
    /** `ip:port`. */
    readonly client: string;
    readonly endpoint: string;
  }[];
}

/** The bit of a packet's mark that asks for masquerading, where the configuration names none. */
export const defaultMasqueradeBit = 14;

/**
 * One proxy mode: everything that differs from other modes. Code outside src/backends/, src/config/ and
 * src/app/modes.ts asks these fields and never compares a mode's name.
 */
export interface Mode {
  readonly name: ProxyMode;
  /** Modes that write into the same chains. A start in this mode leaves their rules alone. */
  readonly sharesRulesWith?: readonly ProxyMode[];
  /** Every start warns with this note, in the log and in an event with this reason. */
  readonly deprecation?: { readonly eventReason: string; readonly note: string };
  /** The metric of missing local endpoints counts Services; in other modes it counts service ports. */
  readonly countsServices?: boolean;
  /** A start goes on when the conntrack parameters cannot be set: the mode also runs without privileges. */
  readonly toleratesConntrackFailure?: boolean;
  /** All decisions are nf_tables rules (or iptables-nft ones), so a trace shows the whole way of a packet. */
  readonly isTraceable?: boolean;
  /** Destinations are rewritten by NAT, so the kernel marks their connections. */
  readonly rewritesWithNat?: boolean;
  /** Can choose endpoints by a hash. */
  readonly hashes?: boolean;
  /** Connections to endpoints that are gone can get a TCP reset. */
  readonly resetsDeparted?: boolean;
  /** Packets of open connections can skip the rules. */
  readonly hasFastPath?: boolean;
  /** Connections go through the process of the proxy, so another process cannot see all that serves them. */
  readonly servesInProcess?: boolean;
  /** What the process forwarded since its start; absent in modes whose connections the kernel forwards. */
  forwarded?(): Promise<readonly ForwardedPort[]>;
  /** Connections that got an endpoint since the last call, or all open ones; for one caller. Absent with `forwarded`. */
  connections?(): Promise<ForwardedConnections>;
  /** With these settings, connections of clients go through the process, and end with the backend. */
  holdsConnections?(context: InspectionContext): boolean;
  /** Everything that this mode, here or upstream, may have left in the kernel. */
  readonly leftovers: LeftoverSource;
  /** Tables of nf_tables that only this mode writes; none when absent. */
  tablesOf?(family: Family): readonly TableRef[];
  /** Matches the names of this mode's chains in tables that it shares with other programs. */
  readonly chainNames?: RegExp;
  metricGroups(gateEnabled: (gate: string) => boolean): readonly MetricGroup[];
  /** How packets are treated in this mode, with these settings. */
  packetRules(context: Pick<InspectionContext, 'family' | 'config' | 'gateEnabled'>): PacketRules;
  /** The families that this node can serve in this mode. Logs why it cannot serve one, throws when it can serve none. */
  supportedFamilies(logger: Logger): Promise<ReadonlySet<Family>>;
  /** Checks the preconditions of the mode in this family; throws the reason when one fails. */
  create(context: BackendContext): Promise<Backend>;
  /** Opens an inspection of this mode's state in this family. Writes nothing and needs no running backend. */
  inspect(context: InspectionContext): Promise<Inspection>;
}
