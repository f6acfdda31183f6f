import type { Frontend } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { addressBytes, type Bytes, portBytes, protocolBytes } from './bytes.ts';

/** The key of a frontend in our maps: (address, protocol, port), or (protocol, port) for a node port. */
export function keyOf({ address, port, protocol }: Frontend): Bytes {
  const suffix = protocolBytes(protocol) + portBytes(port);
  return address === '' ? suffix : addressBytes(address) + suffix;
}

/** Cluster address of a plan, as its set holds it. */
export function clusterAddressOf(plan: ServicePlan): Bytes[] {
  return plan.port.clusterIP === '' ? [] : [addressBytes(plan.port.clusterIP)];
}

/** What a packet looks like that one of the plan's endpoints on this node sent to itself through the service. */
export function hairpinsOf(plan: ServicePlan): Bytes[] {
  const protocol = protocolBytes(plan.port.protocol);
  return plan.all
    .filter((endpoint) => endpoint.isLocal)
    .map(({ ip, port }) => {
      const address = addressBytes(ip);
      return address + address + protocol + portBytes(port);
    });
}
