import type { Packet } from '../backends/inspection.ts';
import { servicePortName } from '../model/service-port.ts';
import type { Matches } from './frontends.ts';
import { isInRange, isOwnAddress, type NodeFacts } from './node-facts.ts';
import type { Outcome } from './outcome.ts';

/** nftables and userspace mode: cluster IPs have no other ports, and the rest of their ranges is nobody's. */
export function refusedByChain(packet: Packet, matches: Matches, node: NodeFacts): Outcome | undefined {
  const { destination, port, protocol } = packet;
  if (isOwnAddress(destination, node)) return undefined;
  if (matches.clusterAddress) {
    const { namespace, name } = matches.clusterAddress;
    return {
      action: 'reject',
      reasons: [
        `${destination} is the cluster IP of service ${namespace}/${name}, which has no port ${port}/${protocol}.`,
      ],
    };
  }
  const range = node.serviceCIDRs.find((cidr) => isInRange(destination, cidr));
  if (range === undefined) return undefined;
  return {
    action: 'drop',
    reasons: [`${destination} is in the service range ${range} and no service has it.`],
  };
}

/** ipvs mode: what is on the device `kube-ipvs0` answers at the ports of services and health checks only. */
export function refusedByDevice(packet: Packet, matches: Matches, node: NodeFacts): Outcome | undefined {
  const { destination, port, protocol } = packet;
  const { anyAddress, clusterAddress, healthCheck } = matches;
  const isBound = clusterAddress ?? (isOwnAddress(destination, node) ? undefined : anyAddress);
  if (!isBound) return undefined;
  const owner = `${destination} is an address of service ${servicePortName({ ...isBound, portName: '' })}`;
  if (healthCheck) {
    return { action: 'pass', reasons: [`${owner}, and ${port} is the health check port of a service.`] };
  }
  return { action: 'reject', reasons: [`${owner}, which has no port ${port}/${protocol} there.`] };
}

/** iptables mode has no rules for what is not there. */
export function passesUnseen(): undefined {
  return undefined;
}
