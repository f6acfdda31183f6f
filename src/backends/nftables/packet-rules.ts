import type { NodePortAddresses } from '../../model/node-port-addresses.ts';
import type { Frontend } from '../../plan/frontend.ts';
import type { Packet } from '../inspection.ts';
import { isLoopbackAddress } from '../node-facts.ts';
import {
  atSelectedAddresses,
  checksSourceRanges,
  choiceByPlan,
  choiceOf,
  masqueradeByRules,
  type NotForwarded,
  nodePortNotServed,
  notSelected,
  type PacketRules,
  refusesServiceRanges,
} from '../packet-rules.ts';

const gate = 'KubeProxyNFTablesLocalhostNodePorts';
const listeners: readonly string[] = ['127.0.0.1', '::1'];

/** How nftables mode treats packets; `localhostNodePorts` is the feature gate of that name. */
export function packetRules(localhostNodePorts: boolean): PacketRules {
  return {
    nodePort: (frontend, packet, node) =>
      isLoopbackAddress(packet.destination)
        ? atLoopback(packet, frontend, node.nodePortAddresses, localhostNodePorts)
        : atSelectedAddresses(frontend, packet, node),
    unmatched: refusesServiceRanges,
    checksSource: checksSourceRanges,
    choose: (frontend, sender, { destination }) =>
      isLoopbackAddress(destination)
        ? choiceOf(frontend.outside, frontend.plan)
        : choiceByPlan(frontend, sender),
    masquerade: (frontend, packet, node, sender) =>
      isLoopbackAddress(packet.destination) ? byProcess : masqueradeByRules(frontend, packet, node, sender),
    keepsSourceForOwnEndpoints: true,
    isHairpin: ({ isLocal, ip }, { source }) => isLocal && ip === source,
  };
}

const byProcess = {
  masquerade: true,
  reason: `The endpoint sees an address of this node: kube-proxy itself listens at the loopback address (feature gate ${gate}) and makes the connection to it.`,
} as const;

/** Why a node port is not served at a loopback address; undefined when kube-proxy listens there. */
function atLoopback(
  { protocol, destination }: Packet,
  { outside }: Frontend,
  nodePortAddresses: NodePortAddresses,
  localhostNodePorts: boolean,
): NotForwarded | undefined {
  if (!localhostNodePorts) {
    return nodePortNotServed(destination, `the feature gate ${gate} is off`);
  }
  if (!nodePortAddresses.explicitLoopback) {
    return rejected(destination, `${notSelected(nodePortAddresses)}, and names no loopback address`);
  }
  if (protocol === 'SCTP') return rejected(destination, 'kube-proxy does not listen for SCTP');
  if (!listeners.includes(destination)) {
    return nodePortNotServed(destination, `kube-proxy listens at ${listeners.join(' and ')} only`);
  }
  if (outside.action === 'forward') return undefined;
  return nodePortNotServed(destination, `${outside.reason}, so kube-proxy does not listen`);
}

function rejected(address: string, why: string): NotForwarded {
  const reason = `Node ports are not served at ${address}: ${why}.`;
  return { action: 'reject', reasons: [reason, 'Packets to them are counted and rejected.'] };
}
