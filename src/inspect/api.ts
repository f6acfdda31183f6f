import type { Difference, Fate, KernelAnswer, OtherRules, Packet } from '../backends/inspection.ts';
import type { ConfigOnDisk, LastConfigChange } from '../model/config-file-status.ts';
import type { FastPathSettings } from '../model/fast-path.ts';
import type { Family } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { Placement } from '../model/placement.ts';
import type { ProxyState } from '../model/problem.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';
import type { SourceStatus, WatchStatus } from '../model/source-status.ts';
import type { Decision, ServicePlan } from '../plan/service-plan.ts';
import type { JournalEvent } from './journal.ts';

/**
 * The JSON of the inspection API, for kube-proxyctl and other programs. Within one version, fields may be added, and keep
 * their name and meaning. Times are RFC 3339, durations seconds.
 */
export const API_VERSION = 'inspect.kube-proxy-ts/v1';

/** The path of the inspection API on the metrics address. */
export const API_PATH = '/debug/kube-proxy/';

/** The first fields of every answer. */
export interface TypeMeta<Kind extends string> {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: Kind;
}

export interface FamilyStatus {
  readonly family: Family;
  /** False during an outage of this family. */
  readonly healthy: boolean;
  /** Services and EndpointSlices have been listed; nothing is written before. */
  readonly initialised: boolean;
  readonly nodeIP: string;
  readonly servicePorts: number;
  readonly endpoints: number;
  readonly serviceCIDRs: readonly string[];
  /** Changes that wait for the next sync. */
  readonly pending: { readonly services: number; readonly endpointSlices: number };
  readonly syncs: number;
  readonly lastSync: {
    readonly time: string;
    readonly seconds: number;
    readonly kind: 'full' | 'partial';
    readonly changedServicePorts: number;
  } | null;
  readonly failures: number;
  readonly lastFailure: { readonly time: string; readonly message: string } | null;
  /** Repairs of what other programs had changed. */
  readonly repairs: number;
  readonly lastRepair: string | null;
  /** The program, by name and process id, and what it changed: `rule deleted: 3`. */
  readonly lastRepairCause: { readonly by: string; readonly changes: string } | null;
  /** Null when it is off or nothing is written yet; absent in earlier versions. */
  readonly fastPath?: FastPathReport | null;
}

/** Packets of open connections skip the rules. */
export interface FastPathReport {
  /** Connections of Services, or all that the node forwards. */
  readonly scope: FastPathSettings['scope'];
  /** Packets of a connection that take the usual way first. */
  readonly after: number;
  readonly inUse: boolean;
  /** Why it is not in use. */
  readonly reason: string | null;
  /** False: the kernel does not count packets, so no new connection gets to the fast path. */
  readonly counting: boolean;
  readonly devices: readonly string[];
  readonly leftOut: readonly { readonly device: string; readonly reason: string }[];
}

/** Something that an operator should know and act on. */
export interface ProblemReport {
  /** A name that stays the same, for scripts. */
  readonly kind: string;
  /** Null when it concerns the whole program. */
  readonly family: Family | null;
  /** Null when that is not known. */
  readonly since: string | null;
  /** Services of this node do not work as they should. */
  readonly outage: boolean;
  readonly text: string;
}

/** An object that is not (fully) programmed. */
export interface SetAsideReport {
  readonly family: Family;
  readonly reason: 'invalid' | 'refused';
  readonly object: string;
  readonly problems: readonly string[];
}

/** The watch of one resource at the API server. */
export interface WatchReport {
  /** As in the API: `endpointslices`. */
  readonly resource: string;
  /** `connecting` is normal for some seconds, as after every watch that the server ended; then it is `broken`. */
  readonly state: WatchStatus['state'];
  /** The beginning of the connection. Without one, until when all changes are known. */
  readonly since: string;
  /** Why the last attempt failed; null while connected. */
  readonly reason: string | null;
  /** When the server last sent objects or a bookmark; null if it never did. */
  readonly lastEvent: string | null;
}

/** Where the objects come from, and how current they are. */
export interface SourcesReport {
  readonly kind: SourceStatus['kind'];
  /** The URL of the API server, or the path of the manifests. */
  readonly location: string;
  /** Empty for manifests. */
  readonly watches: readonly WatchReport[];
  /** Files that are not (fully) in effect. */
  readonly errors: readonly {
    readonly path: string;
    /** `line:column`; null when unknown. */
    readonly position: string | null;
    readonly reason: string;
    readonly since: string;
  }[];
}

/** The configuration file that the program was started with. */
export interface ConfigurationReport {
  readonly file: string;
  /** Of the content in use. */
  readonly sha256: string;
  /** When the content in use was read. */
  readonly readTime: string;
  /** 1 from the start on, one more with every change that was applied without a restart. */
  readonly generation: number;
  /** When this generation came into use. */
  readonly generationTime: string;
  /** What became of the last usable change of the file; null when there was none since the start. */
  readonly lastChange: {
    readonly time: string;
    /** With `RestartNeeded`, the program is about to end. */
    readonly outcome: LastConfigChange['outcome'];
    /** Paths in the file: `nftables.masqueradeAll`. With `RestartNeeded`, those that need the restart. */
    readonly fields: readonly string[];
    /** Why it was not applied. */
    readonly reason: string | null;
  } | null;
  /** What the path leads to now. `Rejected`: a valid file that this node could not use. With `Unusable`, a restart would fail. `Unknown`: a pipe, or it cannot be watched. */
  readonly onDisk: {
    readonly state: ConfigOnDisk['state'];
    readonly since: string;
    readonly reason: string | null;
  };
}

/** Version and commit of kube-proxy-ts itself. */
export interface ProductReport {
  readonly version: string;
  /** `unknown` when the program runs from its sources, or was built without git. */
  readonly commit: string;
  /** `dirty`: built from sources with changes that were not committed. */
  readonly treeState: 'clean' | 'dirty' | 'unknown';
}

export interface StatusReport extends TypeMeta<'Status'> {
  /** The Kubernetes release that the proxy stands in for. */
  readonly version: string;
  /** Absent in the first builds. */
  readonly product?: ProductReport;
  readonly mode: ProxyMode;
  readonly nodeName: string;
  readonly time: string;
  readonly startTime: string;
  /** False when `state` is `unhealthy`: then /healthz answers 503. */
  readonly healthy: boolean;
  /** `degraded`: there are problems, but none is an outage. */
  readonly state: ProxyState;
  /** Empty exactly when `state` is `healthy`. */
  readonly problems: readonly ProblemReport[];
  readonly families: readonly FamilyStatus[];
  readonly sources: SourcesReport;
  /** Null without --config. */
  readonly configuration: ConfigurationReport | null;
  readonly setAside: readonly SetAsideReport[];
}

export interface DecisionReport {
  readonly action: Decision['action'];
  /** Which set of endpoints takes the traffic; only with `forward`. */
  readonly endpoints?: 'cluster' | 'local';
  readonly reason: string;
}

/** One service port in one family: its settings and the decisions. */
export interface ServiceReport {
  readonly service: string;
  readonly family: Family;
  readonly namespace: string;
  readonly name: string;
  /** Empty when it has none, as in a manifest. */
  readonly uid: string;
  /** Of two claimants of an address, the older one owns it; null when that is not known. */
  readonly creationTime: string | null;
  readonly portName: string;
  readonly protocol: Protocol;
  readonly clusterIP: string;
  readonly port: number;
  /** 0 = none. */
  readonly nodePort: number;
  readonly externalIPs: readonly string[];
  readonly loadBalancerIPs: readonly string[];
  readonly loadBalancerSourceRanges: readonly string[];
  /** 0 = none. */
  readonly healthCheckNodePort: number;
  /** 0 = no session affinity. */
  readonly affinitySeconds: number;
  /** Present when the Service asks for a hash that this mode can do; null when it has too many endpoints for one. */
  readonly balance?: 'hash' | 'hash-client' | null;
  /** The kernel's scheduler that hashes, where it does not use the table of the other modes; else absent. */
  readonly hashScheduler?: string;
  /** True when connections to endpoints that are gone get a TCP reset; else absent. */
  readonly resetsDeparted?: boolean;
  /** The hash that the Service asks for and this proxy mode cannot do; else absent. */
  readonly unsupportedBalance?: 'hash' | 'hash-client';
  /** True when the Service asks for such resets and this proxy mode cannot do them; else absent. */
  readonly unsupportedReset?: boolean;
  readonly internalTrafficPolicy: 'Cluster' | 'Local';
  readonly externalTrafficPolicy: 'Cluster' | 'Local';
  readonly internal: DecisionReport;
  /** Null when the service port has no external address. */
  readonly external: DecisionReport | null;
  readonly topology: ServicePlan['topology'];
  /** Destinations that it claims but another service port owns; absent when there are none. */
  readonly lost?: readonly { readonly frontend: string; readonly owner: string }[];
  readonly endpoints: { readonly known: number; readonly cluster: number; readonly local: number };
  /**
   * Present when packets to service addresses are not captured: why, and where each frontend is reachable. `address` is
   * null when it is nowhere.
   */
  readonly direct?: {
    readonly reason: string;
    readonly places: readonly {
      readonly frontend: string;
      readonly address: string | null;
      readonly note: string;
    }[];
  };
}

/** One endpoint of one service port, where it runs, and why it takes traffic or does not. */
export interface EndpointReport extends Placement {
  readonly service: string;
  readonly family: Family;
  readonly endpoint: string;
  readonly local: boolean;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
  /** The sets that contain it. */
  readonly usedBy: readonly ('cluster' | 'local')[];
  /** The share of new connections that it gets where the proxy forwards to this set, 0 to 1; absent when no set contains it. */
  readonly expectedShares?: { readonly cluster?: number; readonly local?: number };
  readonly reason: string;
}

export interface ListReport<Kind extends string, Item> extends TypeMeta<Kind> {
  /** In no particular order. */
  readonly items: readonly Item[];
}

export type ServiceList = ListReport<'ServiceList', ServiceReport>;
export type EndpointList = ListReport<'EndpointList', EndpointReport>;

/** The fate of one packet by the plans, and by the state of the kernel. */
export interface ExplanationReport extends TypeMeta<'Explanation'> {
  readonly mode: ProxyMode;
  readonly nodeName: string;
  readonly packet: Packet;
  readonly planned: {
    readonly service: string | null;
    readonly frontend: string | null;
    readonly fate: Fate;
    readonly reasons: readonly string[];
  };
  /** Where the endpoints of both fates run, by `ip:port`, as far as it is known. */
  readonly placements?: Readonly<Record<string, Placement>>;
  /** Null when the kernel did not answer; `kernelUnknown` then says why. */
  readonly kernel: KernelAnswer | null;
  readonly kernelUnknown: string | null;
  /** How the two differ, in sentences; empty when they agree or the kernel's answer is unknown. */
  readonly differences: readonly string[];
  /**
   * What the rules of other programs do with the packet. Nothing was looked at when the proxy drops or rejects it. Null
   * when they could not be read; `otherRulesUnknown` then says why.
   */
  readonly otherRules: OtherRules | null;
  readonly otherRulesUnknown: string | null;
}

/** Whether the kernel answered about one family. */
export interface FamilyLook {
  readonly family: Family;
  /** Why it did not; null when it did. */
  readonly error: string | null;
}

export interface FamilyComparison extends FamilyLook {
  /** False when a sync disturbed every attempt, so that differences may be temporary. */
  readonly settled: boolean;
  readonly differences: number;
}

/** `wanted` is absent when the object should not be there, `found` when it is not there. */
export type DifferenceReport = Omit<Difference, 'service'> & {
  readonly family: Family;
  /** Null for an object that belongs to no single service. */
  readonly service: string | null;
};

export interface DiffReport extends ListReport<'Diff', DifferenceReport> {
  readonly mode: ProxyMode;
  readonly families: readonly FamilyComparison[];
}

/** One or several events of one kind within a second. */
export interface JournalItem {
  /** Of the first. */
  readonly time: string;
  readonly event: JournalEvent;
  /** Null when it concerns the whole program. */
  readonly family: Family | null;
  /** How many events; syncs of one second share an item. */
  readonly count: number;
  /** What happened, in sentences; the first few different ones. */
  readonly texts: readonly string[];
  /**
   * The first few Services that it is about. `latencySeconds` is the time from the change of the endpoints in the API to
   * the end of the sync; null for changes whose time the API does not tell.
   */
  readonly services: readonly { readonly service: string; readonly latencySeconds: number | null }[];
  /** How many Services it is about; a Service beyond the first few may be counted several times. */
  readonly serviceCount: number;
  /** Only for `Sync`. Of several syncs, the longest times and the sum of the service ports. */
  readonly sync?: {
    readonly kind: 'full' | 'partial';
    readonly seconds: number;
    /** Service ports whose plan changed. */
    readonly servicePorts: number;
    /** From the arrival of the first change to the end of the sync; null when no change asked for it. */
    readonly waitSeconds: number | null;
    /** The longest of all changes, not only of those in `services`. */
    readonly latencySeconds: number | null;
  };
}

/** What happened in the last hour, the oldest item first. */
export interface JournalReport extends TypeMeta<'Journal'> {
  readonly time: string;
  /** Everything that happened since then is in the journal. */
  readonly since: string;
  /** Items left out, for a question with a name, that are about more Services than they name, perhaps about this one. */
  readonly unnamed: number;
  readonly items: readonly JournalItem[];
}

/** The last records of the log, the oldest first, without secrets. */
export type LogReport = ListReport<'Log', { readonly record: string }>;

/** The machine and the node that the proxy runs on, as far as decisions and support cases need it. */
export interface NodeReport extends TypeMeta<'Node'> {
  readonly nodeName: string;
  readonly zone: string;
  /** Of the Node object. */
  readonly nodeIPs: readonly string[];
  readonly podCIDRs: readonly string[];
  /** On the interfaces of the machine. */
  readonly addresses: readonly string[];
  readonly kernel: { readonly release: string; readonly version: string; readonly machine: string };
  /** Equal for processes that see the same kernel and the same network namespace. */
  readonly bootId: string | null;
  readonly networkNamespace: string | null;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly uptimeSeconds: number;
  readonly process: { readonly pid: number; readonly node: string; readonly residentBytes: number };
}
