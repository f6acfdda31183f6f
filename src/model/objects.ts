/**
 * The cluster's objects, with the fields that kube-proxy uses. Every source (API server, manifests) delivers these
 * types; the source interns strings that repeat across objects.
 */

import type { OwnAnnotations } from './own-annotations.ts';

export type Protocol = 'TCP' | 'UDP' | 'SCTP';

export interface ObjectKey {
  readonly namespace: string;
  readonly name: string;
}

export interface ServiceObject extends ObjectKey {
  readonly resourceVersion: string;
  readonly uid: string;
  /** `metadata.creationTimestamp` in seconds since the Unix epoch; 0 when the object does not say. */
  readonly createdAt: number;
  /** `spec.type`, as written. */
  readonly type: string;
  readonly clusterIP: string;
  readonly clusterIPs: readonly string[];
  readonly ipFamilies: readonly string[];
  readonly externalIPs: readonly string[];
  readonly loadBalancerIngress: readonly { readonly ip: string; readonly ipMode?: string }[];
  readonly loadBalancerSourceRanges: readonly string[];
  readonly externalTrafficPolicy: string;
  readonly internalTrafficPolicy: string;
  readonly healthCheckNodePort: number;
  readonly sessionAffinity: string;
  /** `spec.sessionAffinityConfig.clientIP.timeoutSeconds`; undefined when absent. */
  readonly affinityTimeoutSeconds?: number;
  readonly ports: readonly ServicePortObject[];
  /** Those under our own prefix; absent when there are none. */
  readonly annotations?: OwnAnnotations;
}

export interface ServicePortObject {
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
  readonly nodePort: number;
}

export interface EndpointSliceObject extends ObjectKey {
  readonly resourceVersion: string;
  /** Value of label `kubernetes.io/service-name`; empty when absent. */
  readonly serviceName: string;
  readonly addressType: string;
  /** `endpoints.kubernetes.io/last-change-trigger-time`, as written. */
  readonly triggerTime?: string;
  readonly endpoints: readonly EndpointObject[];
  /**
   * The pod of each endpoint, by `packNames`: a name, or `namespace/name` when it is not in the namespace of the slice.
   * Absent when no endpoint has one. Only people see it; a change of it alone changes nothing.
   */
  readonly pods?: string;
  readonly ports: readonly SlicePortObject[];
}

export interface EndpointObject {
  /** The first of `addresses`; an endpoint without any is reported and skipped. */
  readonly address?: string;
  /** The conditions; null means true for ready and serving, false for terminating. */
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly nodeName?: string;
  /** Only people see it, like the pod. */
  readonly zone?: string;
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
}

export interface SlicePortObject {
  /** Undefined when null in the API; the port is then reported and skipped. */
  readonly name?: string;
  readonly protocol: string;
  readonly port?: number;
}

export interface NodeObject {
  readonly name: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  /** InternalIP and ExternalIP entries of `status.addresses`, in order. */
  readonly addresses: readonly { readonly type: string; readonly address: string }[];
  readonly podCIDRs: readonly string[];
  readonly taintKeys: readonly string[];
  readonly deleting: boolean;
}

export interface ServiceCIDRObject {
  readonly name: string;
  readonly resourceVersion: string;
  readonly cidrs: readonly string[];
}

/** The resources that are watched, and the type of their objects. */
export interface Resources {
  services: ServiceObject;
  endpointSlices: EndpointSliceObject;
  nodes: NodeObject;
  serviceCIDRs: ServiceCIDRObject;
}

export type ResourceName = keyof Resources;
