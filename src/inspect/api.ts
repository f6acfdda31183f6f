import type { Difference, Fate, KernelAnswer, Packet, ServiceCounters } from '../backends/inspection.ts';
import type { Family } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';
import type { Decision, ServicePlan } from '../plan/service-plan.ts';

/**
 * The JSON of the inspection API, which kube-proxyctl and other programs read. Fields may be added; what is here keeps
 * its name and meaning within one version. Times are RFC 3339, durations seconds.
 */
export const API_VERSION = 'inspect.kube-proxy-ts/v1';

/** Where the inspection API is on the metrics address. */
export const API_PATH = '/debug/kube-proxy/';

/** What every answer begins with. */
export interface TypeMeta<Kind extends string> {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: Kind;
}

export interface FamilyStatus {
  readonly family: Family;
  /** True when no requested sync is overdue; null when the health server is switched off. */
  readonly healthy: boolean | null;
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
  /** Objects in the kernel that were put right because another program had changed them. */
  readonly repairs: number;
  readonly lastRepair: string | null;
}

/** An object, or a part of it, that is not programmed. */
export interface SetAsideReport {
  readonly family: Family;
  readonly reason: 'invalid' | 'refused';
  readonly object: string;
  readonly problems: readonly string[];
}

export interface StatusReport extends TypeMeta<'Status'> {
  readonly version: string;
  readonly mode: ProxyMode;
  readonly nodeName: string;
  readonly time: string;
  readonly startTime: string;
  /** Null when the health server is switched off. */
  readonly healthy: boolean | null;
  readonly families: readonly FamilyStatus[];
  readonly setAside: readonly SetAsideReport[];
}

export interface DecisionReport {
  readonly action: Decision['action'];
  /** Which set of endpoints takes the traffic; only with `forward`. */
  readonly endpoints?: 'cluster' | 'local';
  readonly reason: string;
}

/** One service port in one family: what was asked for and what was decided. */
export interface ServiceReport {
  readonly service: string;
  readonly family: Family;
  readonly namespace: string;
  readonly name: string;
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
  readonly internalTrafficPolicy: 'Cluster' | 'Local';
  readonly externalTrafficPolicy: 'Cluster' | 'Local';
  readonly internal: DecisionReport;
  /** Null when there is no external address to come in by. */
  readonly external: DecisionReport | null;
  readonly topology: ServicePlan['topology'];
  readonly endpoints: { readonly known: number; readonly cluster: number; readonly local: number };
}

/** One endpoint of one service port, and why it takes the traffic it takes. */
export interface EndpointReport {
  readonly service: string;
  readonly family: Family;
  readonly endpoint: string;
  readonly local: boolean;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
  /** The sets it is in. */
  readonly usedBy: readonly ('cluster' | 'local')[];
  readonly reason: string;
}

export interface ListReport<Kind extends string, Item> extends TypeMeta<Kind> {
  /** In no particular order. */
  readonly items: readonly Item[];
}

export type ServiceList = ListReport<'ServiceList', ServiceReport>;
export type EndpointList = ListReport<'EndpointList', EndpointReport>;

/** What becomes of one packet: as planned, and as the kernel has it. */
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
  /** Null when the kernel was not, or could not be, asked; `kernelUnknown` then says why. */
  readonly kernel: KernelAnswer | null;
  readonly kernelUnknown: string | null;
  /** In what the two differ; empty when they agree, and when the kernel's answer is not known. */
  readonly differences: readonly string[];
}

/** How one family could be looked at. */
export interface FamilyLook {
  readonly family: Family;
  /** Why it could not; null when it could. */
  readonly error: string | null;
}

export interface FamilyComparison extends FamilyLook {
  /** False when a sync was under way all the time: what differs may just have been written. */
  readonly settled: boolean;
  readonly differences: number;
}

/** `wanted` and `found` are absent where a thing should not be there, or is not. */
export type DifferenceReport = Omit<Difference, 'service'> & {
  readonly family: Family;
  /** Null for what belongs to no single service. */
  readonly service: string | null;
};

export interface DiffReport extends ListReport<'Diff', DifferenceReport> {
  readonly mode: ProxyMode;
  readonly families: readonly FamilyComparison[];
}

export interface CountersReport
  extends ListReport<'Counters', ServiceCounters & { readonly family: Family }> {
  readonly mode: ProxyMode;
  readonly time: string;
  readonly families: readonly FamilyLook[];
}
