import type { Family } from './ip.ts';
import type { Protocol } from './objects.ts';
import { sameStrings } from './same-strings.ts';

/**
 * How an endpoint is chosen for a new connection: as the mode does it, or by a hash of the client's address and port
 * (`hash`) or of its address alone (`hash-client`), in the same way on all nodes.
 */
export type Balance = 'default' | 'hash' | 'hash-client';

/**
 * One port of one Service in one family: what policy needs to know, with addresses in canonical form and of
 * this family only. Two records with equal fields are interchangeable.
 */
export interface ServicePort {
  /** `namespace/name:port/PROTOCOL`: unique, stable, sorted byte-wise wherever order matters. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** The Service's own; '' when it has none, as in a manifest. */
  readonly uid: string;
  /** When the Service was made, in seconds since the Unix epoch; 0 when that is not known. */
  readonly createdAt: number;
  readonly portName: string;
  readonly protocol: Protocol;
  readonly family: Family;
  readonly clusterIP: string;
  readonly port: number;
  /** 0 = none. */
  readonly nodePort: number;
  /** Seconds of ClientIP affinity; 0 = none. */
  readonly affinitySeconds: number;
  readonly balance: Balance;
  /** External IPs as configured; empty lists of them still count as externally accessible when gated off. */
  readonly externalIPs: readonly string[];
  readonly loadBalancerVIPs: readonly string[];
  /** Canonical CIDRs of this family; empty = open to everyone. */
  readonly sourceRanges: readonly string[];
  readonly externalPolicyLocal: boolean;
  readonly internalPolicyLocal: boolean;
  /** 0 = none. */
  readonly healthCheckNodePort: number;
  /** Connections to endpoints that are gone get a TCP reset. */
  readonly resetsDeparted: boolean;
  /** The hash that an annotation asks for and the proxy mode cannot do; `balance` is then `default`. */
  readonly unsupportedBalance: Exclude<Balance, 'default'> | undefined;
  /** An annotation asks for resets, and the proxy mode cannot do them. */
  readonly unsupportedReset: boolean;
}

/** `namespace/name:port`, or `namespace/name` for an unnamed port: what people and rule comments call it. */
export function servicePortName(port: {
  readonly namespace: string;
  readonly name: string;
  readonly portName: string;
}): string {
  const service = `${port.namespace}/${port.name}`;
  return port.portName === '' ? service : `${service}:${port.portName}`;
}

export function servicePortKey(
  namespace: string,
  name: string,
  portName: string,
  protocol: Protocol,
): string {
  return `${servicePortName({ namespace, name, portName })}/${protocol}`;
}

/** Reachable through an address other than the cluster IP, whether or not a feature gate hides it. */
export function isExternallyAccessible(
  port: Pick<ServicePort, 'nodePort' | 'loadBalancerVIPs' | 'externalIPs'>,
): boolean {
  return port.nodePort !== 0 || port.loadBalancerVIPs.length > 0 || port.externalIPs.length > 0;
}

export function sameServicePort(a: ServicePort, b: ServicePort): boolean {
  if (a === b) return true;
  return (
    a.key === b.key &&
    a.uid === b.uid &&
    a.createdAt === b.createdAt &&
    a.family === b.family &&
    a.clusterIP === b.clusterIP &&
    a.port === b.port &&
    a.nodePort === b.nodePort &&
    a.affinitySeconds === b.affinitySeconds &&
    a.balance === b.balance &&
    a.externalPolicyLocal === b.externalPolicyLocal &&
    a.internalPolicyLocal === b.internalPolicyLocal &&
    a.healthCheckNodePort === b.healthCheckNodePort &&
    a.resetsDeparted === b.resetsDeparted &&
    a.unsupportedBalance === b.unsupportedBalance &&
    a.unsupportedReset === b.unsupportedReset &&
    sameStrings(a.externalIPs, b.externalIPs) &&
    sameStrings(a.loadBalancerVIPs, b.loadBalancerVIPs) &&
    sameStrings(a.sourceRanges, b.sourceRanges)
  );
}
