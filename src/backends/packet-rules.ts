import type { Endpoint } from '../model/endpoint.ts';
import { formatCIDR } from '../model/ip.ts';
import { type NodePortAddresses, nodePortIPs } from '../model/node-port-addresses.ts';
import type { Balance, ServicePort } from '../model/service-port.ts';
import type { Frontend } from '../plan/frontend.ts';
import type { Decision, ServicePlan } from '../plan/service-plan.ts';
import type { Packet } from './inspection.ts';
import { isInRange, isOwnAddress, type NodeFacts, type Sender } from './node-facts.ts';

/** The packet is not forwarded to an endpoint, and why. `pass`: it is routed as if there were no proxy. */
export interface NotForwarded {
  readonly action: 'drop' | 'reject' | 'pass';
  readonly reasons: readonly string[];
}

/** The packet goes to one of these endpoints, which are equally likely and at least one, and why. */
export interface EndpointChoice {
  readonly action: 'forward';
  readonly endpoints: readonly Endpoint[];
  readonly reasons: readonly string[];
}

/** Whether endpoints see an address of the node instead of the client's, and why. */
export interface Masquerade {
  readonly masquerade: boolean;
  readonly reason: string;
}

/** All claims of service ports on a packet's destination, in the order of plans. */
export interface DestinationMatches {
  /** Frontends with the address, protocol and port. */
  readonly addresses: readonly Frontend[];
  /** Node ports with the protocol and port, at any address. */
  readonly nodePorts: readonly Frontend[];
  /** A service port with this cluster IP, at any port. */
  readonly clusterAddress: ServicePort | undefined;
  /** A service port that has the address in any role, at any port. */
  readonly anyAddress: ServicePort | undefined;
  /** A service port with this health check node port. */
  readonly healthCheck: ServicePort | undefined;
}

/** A frontend of a service port, and where a process of this node listens for it. */
export interface DirectPlace {
  /** Key of the service port. */
  readonly key: string;
  /** Name of the frontend: `10.96.0.1:80/TCP`. */
  readonly frontend: string;
  /** `ip:port`; empty when nothing listens for it. */
  readonly address: string;
  /** Why it is not served at its own address; empty when it is. */
  readonly note: string;
}

/** Services that are served by listeners alone, because packets to their addresses are not captured. */
export interface DirectService {
  /** Why they are not captured. */
  readonly reason: string;
  readonly places: readonly DirectPlace[];
}

/**
 * How one mode treats the first packet of a connection, where modes differ. `explainPacket` asks these rules to foretell
 * the packet's fate from the plans. Rules in the kernel are not read; a comparison shows whether they agree.
 */
export interface PacketRules {
  /** The scheduler that chooses among endpoints, where one is configured. */
  readonly scheduler?: string;
  /** The kernel's scheduler that hashes clients of Services that ask for it: its choice cannot be foretold. */
  readonly hashScheduler?: string;
  /** What is served by listeners alone; undefined while packets to service addresses are captured. */
  direct?(): DirectService | undefined;
  /** Why a node port is not served at the packet's destination; undefined when it is. */
  nodePort(frontend: Frontend, packet: Packet, node: NodeFacts): NotForwarded | undefined;
  /** The fate of a packet to a destination without a frontend; undefined when the mode ignores it. */
  unmatched(packet: Packet, matches: DestinationMatches, node: NodeFacts): NotForwarded | undefined;
  /** Whether the source must be in the frontend's source ranges. */
  checksSource(frontend: Frontend, packet: Packet): boolean;
  choose(frontend: Frontend, sender: Sender, packet: Packet): EndpointChoice | NotForwarded;
  /** Why this mode does not refuse the packet, though the plan does; undefined when it refuses. */
  missesRefusal?(frontend: Frontend, packet: Packet, node: NodeFacts): string | undefined;
  masquerade(frontend: Frontend, packet: Packet, node: NodeFacts, sender: Sender): Masquerade;
  /** A packet from elsewhere to an endpoint with an address of the node keeps its source: it does not leave the node. */
  readonly keepsSourceForOwnEndpoints: boolean;
  /** The endpoint is the sender. It is masqueraded, so that the endpoint does not see its own address. */
  isHairpin(endpoint: Endpoint, packet: Packet): boolean;
}

/** The hash that chooses from the table that this program computes; `default` where another hash or none chooses. */
export function foretoldBalance(
  { balance }: Pick<ServicePlan, 'balance'>,
  { hashScheduler }: Pick<PacketRules, 'hashScheduler'>,
): Balance {
  return hashScheduler === undefined ? balance : 'default';
}

/** Follows the plan: its decision, or that for clients on this node. */
export function choiceByPlan(
  { plan, outside, nearEndpoints }: Frontend,
  { kind, reason }: Sender,
): EndpointChoice | NotForwarded {
  if (nearEndpoints === undefined || kind === 'other') return choiceOf(outside, plan);
  const who = kind === 'pod' ? `a pod (${reason})` : 'this node itself';
  return forwarded(plan[nearEndpoints], [
    `externalTrafficPolicy is Local, but it restricts only clients from outside: the sender is ${who} and may reach every endpoint of policy Cluster.`,
    ...topologyReasons(plan),
  ]);
}

export function choiceOf(decision: Decision, plan: ServicePlan): EndpointChoice | NotForwarded {
  const reasons = [sentence(decision.reason)];
  if (decision.action !== 'forward') return { action: decision.action, reasons };
  const isNarrowed = decision.endpoints === 'cluster';
  return forwarded(plan[decision.endpoints], isNarrowed ? [...reasons, ...topologyReasons(plan)] : reasons);
}

export function forwarded(endpoints: readonly Endpoint[], reasons: readonly string[]): EndpointChoice {
  return { action: 'forward', endpoints, reasons };
}

export function topologyReasons({ topology }: ServicePlan): string[] {
  return topology.mode === 'none' ? [] : [`${sentence(topology.reason).slice(0, -1)} (${topology.mode}).`];
}

/** Capitalises a reason and adds a full stop. A first word in camel case stays as it is. */
export function sentence(reason: string): string {
  return `${reason}.`.replace(/^[a-z](?=[a-z]* )/, (letter) => letter.toUpperCase());
}

export function checksSourceRanges({ sourceRanges }: Frontend): boolean {
  return sourceRanges.length > 0;
}

/** Node ports are served at the selected addresses of the node. */
export function atSelectedAddresses(
  _frontend: Frontend,
  { destination }: Packet,
  { nodePortAddresses, ownAddresses }: NodeFacts,
): NotForwarded | undefined {
  const isSelected =
    nodePortAddresses.matchAll || nodePortIPs(nodePortAddresses, ownAddresses).includes(destination);
  return isSelected ? undefined : nodePortNotServed(destination, notSelected(nodePortAddresses));
}

/** Why node ports are not served at an address that the configuration does not select. */
export function notSelected({ cidrs }: NodePortAddresses): string {
  return `nodePortAddresses selects ${cidrs.map(formatCIDR).join(', ')}`;
}

export function nodePortNotServed(address: string, why: string): NotForwarded {
  return { action: 'pass', reasons: [`Node ports are not served at ${address}: ${why}.`] };
}

/** Other ports of a cluster IP reject, and the rest of the service ranges drops, unless the node has the address. */
export function refusesServiceRanges(
  { destination, port, protocol }: Packet,
  { clusterAddress }: DestinationMatches,
  node: NodeFacts,
): NotForwarded | undefined {
  if (isOwnAddress(destination, node)) return undefined;
  if (clusterAddress) {
    const service = `${clusterAddress.namespace}/${clusterAddress.name}`;
    const reason = `${destination} is the cluster IP of service ${service}, which has no port ${port}/${protocol}.`;
    return { action: 'reject', reasons: [reason] };
  }
  const range = node.serviceCIDRs.find((cidr) => isInRange(destination, cidr));
  if (range === undefined) return undefined;
  const reason = `${destination} is in the service range ${range} and no service has it.`;
  return { action: 'drop', reasons: [reason] };
}

/** The rules that nftables and iptables mode write. */
export function masqueradeByRules(
  { masqueraded }: Frontend,
  _packet: Packet,
  node: NodeFacts,
  sender: Sender,
): Masquerade {
  if (masqueraded === 'all') return masqueradedForReplies;
  if (masqueraded === 'all but pods') return masqueradeToClusterIP(node, sender) ?? podsUnknown;
  switch (sender.kind) {
    case 'pod':
      return { masquerade: false, reason: 'Not masqueraded: the sender is a pod.' };
    case 'node':
      return {
        masquerade: true,
        reason: 'Masqueraded: the node itself sends it to an external address.',
      };
    case 'other':
      return {
        masquerade: false,
        reason: 'Not masqueraded: externalTrafficPolicy Local keeps the source address of clients.',
      };
  }
}

export const masqueradedForReplies: Masquerade = {
  masquerade: true,
  reason: 'Masqueraded: externalTrafficPolicy is Cluster, and replies have to come back through this node.',
};

export const podsUnknown: Masquerade = {
  masquerade: false,
  reason: 'Not masqueraded: no setting tells pods from other clients.',
};

/** Undefined where no setting tells pods from other clients. */
export function masqueradeToClusterIP(
  { masqueradeAll }: NodeFacts,
  { isPod, reason }: Sender,
): Masquerade | undefined {
  if (masqueradeAll) return { masquerade: true, reason: 'Masqueraded: masqueradeAll is set.' };
  if (isPod === undefined) return undefined;
  return isPod
    ? { masquerade: false, reason: `Not masqueraded: the sender is a pod (${reason}).` }
    : { masquerade: true, reason: `Masqueraded: the sender is not a pod (${reason}).` };
}
