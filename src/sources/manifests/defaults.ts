import { type Fields, isFields, ObjectError } from '../../kube/fields.ts';
import { familyOf } from '../../model/ip.ts';
import type { EndpointSliceObject, NodeObject, ServiceObject } from '../../model/objects.ts';
import { defaultAffinitySeconds } from '../../model/service-ports.ts';

const addressTypes = ['IPv4', 'IPv6', 'FQDN'];

/** Fills in the defaults that an API server would set. */
export function defaultService(service: ServiceObject): ServiceObject {
  const type = service.type || 'ClusterIP';
  const isExternalName = type === 'ExternalName';
  const clusterIPs = clusterIPsOf(service);
  const sessionAffinity = service.sessionAffinity || 'None';
  const affinitySeconds = service.affinityTimeoutSeconds ?? defaultAffinitySeconds;
  const isExternal = type === 'NodePort' || type === 'LoadBalancer' || service.externalIPs.length > 0;
  return {
    ...service,
    namespace: service.namespace || 'default',
    type,
    clusterIP: service.clusterIP || (clusterIPs[0] ?? ''),
    clusterIPs,
    ipFamilies: service.ipFamilies.length > 0 ? service.ipFamilies : familiesOf(service, clusterIPs),
    externalTrafficPolicy: service.externalTrafficPolicy || (isExternal && !isExternalName ? 'Cluster' : ''),
    internalTrafficPolicy: service.internalTrafficPolicy || (isExternalName ? '' : 'Cluster'),
    sessionAffinity,
    ...(sessionAffinity === 'ClientIP' && { affinityTimeoutSeconds: affinitySeconds }),
  };
}

export function defaultSlice(slice: EndpointSliceObject): EndpointSliceObject {
  if (!addressTypes.includes(slice.addressType)) {
    const name = `${slice.namespace || 'default'}/${slice.name}`;
    throw new ObjectError('EndpointSlice', name, 'addressType', slice.addressType, addressTypes.join(' or '));
  }
  return {
    ...slice,
    namespace: slice.namespace || 'default',
    ports: slice.ports.map((port) => ({ name: '', ...port })),
  };
}

/** Sets `spec.podCIDRs` from `spec.podCIDR`, as an API server does. */
export function defaultNode(node: NodeObject, raw: Fields): NodeObject {
  const podCIDR = isFields(raw.spec) ? raw.spec.podCIDR : undefined;
  if (node.podCIDRs.length > 0 || typeof podCIDR !== 'string' || podCIDR === '') return node;
  return { ...node, podCIDRs: [podCIDR] };
}

function clusterIPsOf(service: ServiceObject): readonly string[] {
  const { clusterIP, clusterIPs } = service;
  if (clusterIPs.length === 0) return clusterIP === '' ? [] : [clusterIP];
  if (clusterIP !== '' && clusterIPs[0] !== clusterIP) {
    throw invalid(
      service,
      'spec.clusterIPs[0]',
      clusterIPs[0],
      `the same as spec.clusterIP ("${clusterIP}")`,
    );
  }
  return clusterIPs;
}

function familiesOf(service: ServiceObject, clusterIPs: readonly string[]): string[] {
  if (clusterIPs[0] === 'None') return [];
  return clusterIPs.map((ip, i) => {
    const family = familyOf(ip);
    if (family) return family;
    const field = service.clusterIPs.length > 0 ? `spec.clusterIPs[${i}]` : 'spec.clusterIP';
    throw invalid(service, field, ip, 'an IP address');
  });
}

function invalid(service: ServiceObject, field: string, value: unknown, wanted: string): ObjectError {
  const name = `${service.namespace || 'default'}/${service.name}`;
  return new ObjectError('Service', name, field, value, wanted);
}
