import type { Packet } from '../inspection.ts';
import { isLoopbackAddress, type NodeFacts } from '../node-facts.ts';
import {
  atSelectedAddresses,
  checksSourceRanges,
  choiceByPlan,
  masqueradeByRules,
  type NotForwarded,
  nodePortNotServed,
  notSelected,
  type PacketRules,
  sentence,
} from '../packet-rules.ts';

/**
 * How iptables mode treats packets. The first rule that matches wins, and each rule is attached to some hooks only.
 * `localhostNodePorts` is the setting of that name.
 */
export function packetRules(localhostNodePorts: boolean): PacketRules {
  return {
    /** A node port without endpoints is refused at every address of the node. */
    nodePort(frontend, packet, node) {
      const notServed = isLoopbackAddress(packet.destination)
        ? atLoopback(packet, node, localhostNodePorts)
        : atSelectedAddresses(frontend, packet, node);
      if (!notServed) return undefined;
      const { action, reason } = frontend.outside;
      return action === 'forward' ? notServed : { action, reasons: [sentence(reason)] };
    },
    unmatched: () => undefined,
    // The rule of an external IP comes before that of the load balancer. Without endpoints there is neither.
    checksSource: (frontend) =>
      frontend.kind === 'load balancer IP' && frontend.plan.hasAnyEndpoints && checksSourceRanges(frontend),
    choose: choiceByPlan,
    missesRefusal({ kind }, { destination, origin }, { ownAddresses }) {
      const isOwn = ownAddresses.includes(destination);
      if (kind === 'cluster IP' && isOwn && origin !== 'node') {
        return 'iptables mode does not refuse packets to a cluster IP that is also an address of the node.';
      }
      if (kind !== 'cluster IP' && !isOwn && kind !== 'node port' && origin === 'node') {
        return 'iptables mode does not refuse packets that the node itself sends to addresses elsewhere.';
      }
      return undefined;
    },
    masquerade: masqueradeByRules,
    keepsSourceForOwnEndpoints: true,
    isHairpin: ({ ip }, { source }) => ip === source,
  };
}

/** Only in IPv4 can the kernel route packets from a loopback address to endpoints. */
function atLoopback(
  { destination }: Packet,
  { family, nodePortAddresses }: NodeFacts,
  localhostNodePorts: boolean,
): NotForwarded | undefined {
  if (family === 'IPv6') {
    return nodePortNotServed(destination, 'the kernel routes no packets from an IPv6 loopback address');
  }
  if (!localhostNodePorts) return nodePortNotServed(destination, 'iptables.localhostNodePorts is false');
  if (nodePortAddresses.containsIPv4Loopback) return undefined;
  return nodePortNotServed(destination, notSelected(nodePortAddresses));
}
