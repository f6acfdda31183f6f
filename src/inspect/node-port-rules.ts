import type { Packet } from '../backends/inspection.ts';
import { isLinkLocalIPv6 } from '../model/ip.ts';
import { nodePortIPs } from '../model/node-port-addresses.ts';
import type { Frontend } from '../plan/frontend.ts';
import { sentence } from './choice.ts';
import { isLoopbackAddress, type NodeFacts } from './node-facts.ts';
import type { Outcome } from './outcome.ts';

/** What becomes of a packet to a node port at an address of the node; undefined: it is served there. */
export type NodePortTest = (frontend: Frontend, packet: Packet, node: NodeFacts) => Outcome | undefined;

/** nftables mode: never at loopback addresses. */
export const atKernelAddresses: NodePortTest = (_frontend, packet, node) => {
  const { destination } = packet;
  if (isLoopbackAddress(destination)) return onLoopback(packet, node);
  return isSelected(destination, node) ? undefined : notServed(destination);
};

/** iptables mode: what nobody serves is refused at any address of the node. */
export const atInterfaceAddresses: NodePortTest = ({ outside }, { destination }, node) => {
  const { family, localhostNodePorts, nodePortAddresses } = node;
  const isClosedLoopback =
    isLoopbackAddress(destination) &&
    !(family === 'IPv4' && localhostNodePorts && nodePortAddresses.containsIPv4Loopback);
  if (!isClosedLoopback && isSelected(destination, node)) return undefined;
  const { action, reason } = outside;
  return action === 'forward' ? notServed(destination) : { action, reasons: [sentence(reason)] };
};

/** ipvs mode: at addresses that another node could reach. */
export const atVirtualServers: NodePortTest = (_frontend, { destination }, node) => {
  const isReachable = !isLoopbackAddress(destination) && !isLinkLocalIPv6(destination);
  return isReachable && isSelected(destination, node) ? undefined : notServed(destination);
};

/** userspace mode: loopback addresses are as good as others. */
export const atProxiedAddresses: NodePortTest = (_frontend, { destination }, node) =>
  isSelected(destination, node) ? undefined : notServed(destination);

function isSelected(address: string, { nodePortAddresses, ownAddresses }: NodeFacts): boolean {
  return nodePortAddresses.matchAll || nodePortIPs(nodePortAddresses, ownAddresses).includes(address);
}

function notServed(address: string): Outcome {
  return { action: 'pass', reasons: [`Node ports are not served at ${address}.`] };
}

function onLoopback({ protocol }: Packet, { localhostNodePorts, nodePortAddresses }: NodeFacts): Outcome {
  const never = 'In nftables mode rules do not serve node ports at loopback addresses.';
  if (!localhostNodePorts) return { action: 'pass', reasons: [never] };
  if (!nodePortAddresses.explicitLoopback || protocol === 'SCTP') {
    return { action: 'reject', reasons: [never, 'Packets to them are counted and rejected.'] };
  }
  const instead = 'kube-proxy itself listens at the loopback address and passes connections on to endpoints.';
  return { action: 'pass', reasons: [never, instead] };
}
