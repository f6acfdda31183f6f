import type { NodePortAddresses } from '../../model/node-port-addresses.ts';
import type { Packet } from '../inspection.ts';
import { isLoopbackAddress } from '../node-facts.ts';
import {
  atSelectedAddresses,
  checksSourceRanges,
  choiceByPlan,
  masqueradeByRules,
  type NotForwarded,
  type PacketRules,
  refusesServiceRanges,
} from '../packet-rules.ts';

/** How nftables mode treats packets; `localhostNodePorts` is the gate KubeProxyNFTablesLocalhostNodePorts. */
export function packetRules(localhostNodePorts: boolean): PacketRules {
  return {
    nodePort: (frontend, packet, node) =>
      isLoopbackAddress(packet.destination)
        ? atLoopback(packet, node.nodePortAddresses, localhostNodePorts)
        : atSelectedAddresses(frontend, packet, node),
    unmatched: refusesServiceRanges,
    checksSource: checksSourceRanges,
    choose: choiceByPlan,
    masquerade: masqueradeByRules,
    keepsSourceForOwnEndpoints: true,
    isHairpin: ({ isLocal, ip }, { source }) => isLocal && ip === source,
  };
}

function atLoopback(
  { protocol }: Packet,
  { explicitLoopback }: NodePortAddresses,
  localhostNodePorts: boolean,
): NotForwarded {
  const never = 'nftables rules do not serve node ports at loopback addresses.';
  if (!localhostNodePorts) return { action: 'pass', reasons: [never] };
  if (!explicitLoopback || protocol === 'SCTP') {
    return { action: 'reject', reasons: [never, 'Packets to them are counted and rejected.'] };
  }
  const instead = 'kube-proxy itself listens at the loopback address and passes connections on to endpoints.';
  return { action: 'pass', reasons: [never, instead] };
}
