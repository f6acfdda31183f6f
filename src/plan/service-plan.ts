import type { Endpoint } from '../model/endpoint.ts';
import type { ServicePort } from '../model/service-port.ts';

/** Which of a plan's two lists of endpoints. */
export type EndpointList = 'cluster' | 'local';

/**
 * What becomes of new connections of one kind to one service port, and why, in words. `reason` is put into
 * words each time it is read: read it to explain, not to program.
 */
export type Decision =
  | { readonly action: 'forward'; readonly endpoints: EndpointList; readonly reason: string }
  | { readonly action: 'drop'; readonly reason: string }
  | { readonly action: 'reject'; readonly reason: string };

export type TopologyMode = 'none' | 'PreferSameNode' | 'PreferSameZone';

/**
 * Everything a backend needs to program one service port in one family. Backends render it; they decide nothing. What
 * it says of each destination is in `frontendsOf`. Endpoint lists are sorted byte-wise by id. A decision to forward always names a list that is not empty.
 */
export interface ServicePlan {
  readonly port: ServicePort;
  /** External IPs to capture: empty when the feature gate AllowServiceExternalIPs is off. */
  readonly externalIPs: readonly string[];
  readonly usesClusterEndpoints: boolean;
  readonly usesLocalEndpoints: boolean;
  /** Reachable through an address other than the cluster IP (node port, load balancer, external IP). */
  readonly externallyAccessible: boolean;
  /** Every endpoint known for the port, usable or not; what `all` leaves out takes no traffic. */
  readonly endpoints: readonly Endpoint[];
  /** Endpoints under policy Cluster, under policy Local, and every endpoint in either. */
  readonly cluster: readonly Endpoint[];
  readonly local: readonly Endpoint[];
  readonly all: readonly Endpoint[];
  /** Some node has an endpoint that may take traffic. */
  readonly hasAnyEndpoints: boolean;
  /** Traffic to the cluster IP. */
  readonly internal: Decision;
  /** Traffic from outside to external IPs, load balancer VIPs and the node port. */
  readonly external: Decision;
  /**
   * Traffic from pods of this node and the node itself to those addresses, where `external` does not hold for them:
   * policy Local binds outside clients only, to keep their source address.
   */
  readonly near: Decision | undefined;
  /** Destinations that the service port asks for and another one has, by name, with that one's key; see Ownership. */
  readonly lost: ReadonlyMap<string, string> | undefined;
  /** How the cluster set was narrowed: by hints for this node, for this zone, or not. */
  readonly topology: { readonly mode: TopologyMode; readonly reason: string };
}
