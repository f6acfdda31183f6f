import type { Endpoint } from '../model/endpoint.ts';
import type { Balance, ServicePort } from '../model/service-port.ts';

/** Which of a plan's two lists of endpoints. */
export type EndpointList = 'cluster' | 'local';

/**
 * What happens to new connections of one kind to one service port, and why. `reason` is built each time it is read:
 * read it to explain, not to program.
 */
export type Decision =
  | { readonly action: 'forward'; readonly endpoints: EndpointList; readonly reason: string }
  | { readonly action: 'drop'; readonly reason: string }
  | { readonly action: 'reject'; readonly reason: string };

export type TopologyMode = 'none' | 'PreferSameNode' | 'PreferSameZone';

/**
 * Everything a backend needs to program one service port in one family. Backends render it; they decide nothing.
 * `frontendsOf` gives its destinations. Endpoint lists are sorted byte-wise by id. A decision to forward always names a
 * list that is not empty.
 */
export interface ServicePlan {
  readonly port: ServicePort;
  /** External IPs to capture: empty when the feature gate AllowServiceExternalIPs is off. */
  readonly externalIPs: readonly string[];
  readonly usesClusterEndpoints: boolean;
  readonly usesLocalEndpoints: boolean;
  /** Reachable through an address other than the cluster IP (node port, load balancer, external IP). */
  readonly externallyAccessible: boolean;
  /** Every known endpoint of the port, usable or not. Only those in `all` take traffic. */
  readonly endpoints: readonly Endpoint[];
  /** Endpoints under policy Cluster, endpoints under policy Local, and the union of both. */
  readonly cluster: readonly Endpoint[];
  readonly local: readonly Endpoint[];
  readonly all: readonly Endpoint[];
  /** How one of them is chosen: as the Service asks for, where there are not too many for that. */
  readonly balance: Balance;
  /** Whether any node has an endpoint that may take traffic. */
  readonly hasAnyEndpoints: boolean;
  /** Traffic to the cluster IP. */
  readonly internal: Decision;
  /** Traffic from outside to external IPs, load balancer VIPs and the node port. */
  readonly external: Decision;
  /**
   * Traffic from pods on this node and from the node itself to those addresses; undefined when `external` applies to
   * it. Policy Local binds only outside clients: its purpose is to keep their source address.
   */
  readonly near: Decision | undefined;
  /** Destinations that this service port claims but another one owns: name to the owner's key. See Ownership. */
  readonly lost: ReadonlyMap<string, string> | undefined;
  /** How hints narrowed the list `cluster`: to endpoints for this node, to those for this zone, or not at all. */
  readonly topology: { readonly mode: TopologyMode; readonly reason: string };
}
