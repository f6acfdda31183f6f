import { isLinkLocalIPv6 } from '../../model/ip.ts';
import { servicePortName } from '../../model/service-port.ts';
import type { Frontend } from '../../plan/frontend.ts';
import type { Packet } from '../inspection.ts';
import { isLoopbackAddress, isOwnAddress, type NodeFacts, type Sender } from '../node-facts.ts';
import {
  atSelectedAddresses,
  checksSourceRanges,
  choiceOf,
  type DestinationMatches,
  type EndpointChoice,
  forwarded,
  type Masquerade,
  masqueradedForReplies,
  masqueradeToClusterIP,
  type NotForwarded,
  nodePortNotServed,
  type PacketRules,
  podsUnknown,
  sentence,
  topologyReasons,
} from '../packet-rules.ts';
import { hashScheduler } from './virtual-server.ts';

/** How ipvs mode treats packets, with this scheduler; empty for the default one. */
export function packetRules(scheduler: string): PacketRules {
  return {
    ...(scheduler !== '' && { scheduler }),
    hashScheduler,
    nodePort: atReachableAddresses,
    unmatched: rejectsOtherPorts,
    // A packet of the node itself is filtered only where its source is the address of the load balancer.
    checksSource: (frontend, { source, destination, origin }) =>
      checksSourceRanges(frontend) && (origin !== 'node' || source === destination),
    choose: choiceByVirtualServer,
    masquerade: masqueradeBySets,
    keepsSourceForOwnEndpoints: true,
    isHairpin: ({ isLocal, ip }, { source }) => isLocal && ip === source,
  };
}

/** Node ports are served at the selected addresses that another node could reach. */
function atReachableAddresses(frontend: Frontend, packet: Packet, node: NodeFacts): NotForwarded | undefined {
  const { destination } = packet;
  const isReachable = !isLoopbackAddress(destination) && !isLinkLocalIPv6(destination);
  if (isReachable) return atSelectedAddresses(frontend, packet, node);
  return nodePortNotServed(destination, 'ipvs mode serves them only at addresses that other nodes can reach');
}

/** An address on the device `kube-ipvs0` answers only at the ports of services and of health checks. */
function rejectsOtherPorts(
  { destination, port, protocol }: Packet,
  { anyAddress, clusterAddress, healthCheck }: DestinationMatches,
  node: NodeFacts,
): NotForwarded | undefined {
  const holder = clusterAddress ?? (isOwnAddress(destination, node) ? undefined : anyAddress);
  if (!holder) return undefined;
  const owner = `${destination} is an address of service ${servicePortName({ ...holder, portName: '' })}`;
  if (healthCheck) {
    return { action: 'pass', reasons: [`${owner}, and ${port} is the health check port of a service.`] };
  }
  return { action: 'reject', reasons: [`${owner}, which has no port ${port}/${protocol} there.`] };
}

/** A virtual server has one list of endpoints for all clients, and rejects when it has none. */
function choiceByVirtualServer({ plan, outside, nearEndpoints }: Frontend): EndpointChoice | NotForwarded {
  if (outside.action !== 'drop') return choiceOf(outside, plan);
  const reason = sentence(outside.reason);
  if (nearEndpoints) {
    const instead = 'ipvs mode uses the endpoints of policy Cluster instead.';
    return forwarded(plan[nearEndpoints], [reason, instead, ...topologyReasons(plan)]);
  }
  return { action: 'reject', reasons: [reason, 'A virtual server without endpoints rejects.'] };
}

/** Rules that look destinations up in ipsets. */
function masqueradeBySets(
  { masqueraded }: Frontend,
  { source, destination }: Packet,
  node: NodeFacts,
  sender: Sender,
): Masquerade {
  if (isLoopbackAddress(source)) {
    return { masquerade: false, reason: 'Not masqueraded: the source is a loopback address.' };
  }
  if (masqueraded === 'all') return masqueradedForReplies;
  if (masqueraded === 'all but pods') {
    const ownSource = 'Masqueraded: the node uses the service address as its source.';
    return (
      masqueradeToClusterIP(node, sender) ??
      (source === destination ? { masquerade: true, reason: ownSource } : podsUnknown)
    );
  }
  return {
    masquerade: false,
    reason: 'Not masqueraded: externalTrafficPolicy Local keeps the source address.',
  };
}
