import { isLoopbackAddress } from '../node-facts.ts';
import {
  atSelectedAddresses,
  checksSourceRanges,
  choiceByPlan,
  masqueradeByRules,
  nodePortNotServed,
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
      const { destination } = packet;
      const { family, nodePortAddresses } = node;
      const isOpen =
        !isLoopbackAddress(destination) ||
        (family === 'IPv4' && localhostNodePorts && nodePortAddresses.containsIPv4Loopback);
      if (isOpen && !atSelectedAddresses(frontend, packet, node)) return undefined;
      const { action, reason } = frontend.outside;
      return action === 'forward' ? nodePortNotServed(destination) : { action, reasons: [sentence(reason)] };
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
