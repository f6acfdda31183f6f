import type { Endpoint } from '../../src/model/endpoint.ts';
import type { ServicePort } from '../../src/model/service-port.ts';
import type { FamilyState } from '../../src/state/family-state.ts';

/** Every applied service port, by key. */
export function portsOf(state: FamilyState): Map<string, ServicePort> {
  const ports = [...state.serviceNames()].flatMap((name) => state.service(name)?.ports ?? []);
  return new Map(ports.map((port) => [port.key, port]));
}

/** The endpoints of the service port with that key; none when there is no such port. */
export function endpointsOf(state: FamilyState, key: string): readonly Endpoint[] {
  const port = portsOf(state).get(key);
  return (port && state.service(`${port.namespace}/${port.name}`)?.endpoints(port)) ?? [];
}
