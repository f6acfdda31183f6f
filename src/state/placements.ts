import { canonicalIPOf, joinHostPort } from '../model/ip.ts';
import type { EndpointObject, EndpointSliceObject } from '../model/objects.ts';
import type { Placement, Placements } from '../model/placement.ts';
import { unpackNames } from '../model/pod-names.ts';
import type { ServicePort } from '../model/service-port.ts';
import { isPortNumber, parseProtocol } from '../model/service-ports.ts';

/**
 * Reads from the slices of a Service, sorted by name, where the endpoints of a port run. They are not part of the
 * endpoints, so that a pod with another name changes no plan, and takes no memory until somebody asks. Returns `known`,
 * an earlier answer, when it still holds.
 */
export function placementsOf(
  slices: readonly EndpointSliceObject[],
  { family, portName, protocol }: Pick<ServicePort, 'family' | 'portName' | 'protocol'>,
  known?: Placements,
): Placements {
  if (known && isReadFrom(known, slices)) return known;
  const byEndpoint = new Map<string, Placement>();
  for (const slice of slices) {
    const ports = slice.ports.filter(
      (port) =>
        port.name === portName && parseProtocol(port.protocol) === protocol && isPortNumber(port.port),
    );
    if (ports.length === 0) continue;
    const pods = slice.pods === undefined ? [] : unpackNames(slice.pods);
    for (const [i, endpoint] of slice.endpoints.entries()) {
      const ip = canonicalIPOf(family, endpoint.address ?? '');
      if (ip === undefined) continue;
      const placement = placementOf(endpoint, pods[i] ?? '', slice.namespace);
      for (const { port = 0 } of ports) {
        const id = joinHostPort(ip, port);
        // The same choice as between the records of one endpoint.
        if (!endpoint.terminating || !byEndpoint.has(id)) byEndpoint.set(id, placement);
      }
    }
  }
  return { byEndpoint, slices };
}

function isReadFrom(known: Placements, slices: readonly EndpointSliceObject[]): boolean {
  return known.slices.length === slices.length && slices.every((slice, i) => slice === known.slices[i]);
}

function placementOf({ nodeName, zone }: EndpointObject, pod: string, namespace: string): Placement {
  return {
    ...(pod !== '' && { pod: pod.includes('/') ? pod : `${namespace}/${pod}` }),
    ...(nodeName !== undefined && { node: nodeName }),
    ...(zone !== undefined && { zone }),
  };
}
