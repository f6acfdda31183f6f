import type { Intern } from '../lib/intern.ts';
import { type Family, families, familyOf } from '../model/ip.ts';
import type {
  EndpointObject,
  EndpointSliceObject,
  NodeObject,
  ResourceName,
  Resources,
  ServiceCIDRObject,
  ServiceObject,
  ServicePortObject,
  SlicePortObject,
} from '../model/objects.ts';
import { packNames, podName } from '../model/pod-names.ts';
import { annotationAt, decodeObject, type Metadata, ownAnnotations } from './decode-object.ts';
import {
  booleanAt,
  FieldFault,
  type Fields,
  fieldsOf,
  integerAt,
  listAt,
  objectAt,
  optionalStringAt,
  stringAt,
  stringsAt,
  within,
} from './fields.ts';
import { onlyHint } from './only-hint.ts';

export const serviceNameLabel = 'kubernetes.io/service-name';
export const triggerTimeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time';
export const maxPort = 65_535;
export const maxInt32 = 2_147_483_647;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export const kinds: { readonly [R in ResourceName]: string } = {
  services: 'Service',
  endpointSlices: 'EndpointSlice',
  nodes: 'Node',
  serviceCIDRs: 'ServiceCIDR',
};

/**
 * Decoders from raw JSON to the types of model/objects.ts. They read only the fields that kube-proxy uses, and throw
 * an `ObjectError` when a field has the wrong type or the object has no name.
 */
export const decoders: { readonly [R in ResourceName]: (raw: unknown, intern: Intern) => Resources[R] } = {
  services: (raw, intern) => decodeObject(kinds.services, raw, (o, meta) => serviceOf(o, meta, intern)),
  endpointSlices: (raw, intern) =>
    decodeObject(kinds.endpointSlices, raw, (o, meta) => sliceOf(o, meta, intern)),
  nodes: (raw, intern) => decodeObject(kinds.nodes, raw, (o, meta) => nodeOf(o, meta, intern)),
  serviceCIDRs: (raw) => decodeObject(kinds.serviceCIDRs, raw, serviceCIDROf),
};

function serviceOf(object: Fields, meta: Metadata, intern: Intern): ServiceObject {
  const loadBalancerIngress = objectAt(object, 'status', (status) =>
    objectAt(status, 'loadBalancer', (lb) => listAt(lb, 'ingress', (item) => ingressOf(item, intern))),
  );
  const origin = objectAt(object, 'metadata', originOf);
  return objectAt(object, 'spec', (spec) => {
    const service: Mutable<ServiceObject> = {
      namespace: intern(meta.namespace),
      name: intern(meta.name),
      resourceVersion: meta.resourceVersion,
      uid: origin.uid,
      createdAt: origin.createdAt,
      type: intern(stringAt(spec, 'type')),
      clusterIP: stringAt(spec, 'clusterIP'),
      clusterIPs: stringsAt(spec, 'clusterIPs'),
      ipFamilies: stringsAt(spec, 'ipFamilies', intern),
      externalIPs: stringsAt(spec, 'externalIPs'),
      loadBalancerIngress,
      loadBalancerSourceRanges: stringsAt(spec, 'loadBalancerSourceRanges', intern),
      externalTrafficPolicy: intern(stringAt(spec, 'externalTrafficPolicy')),
      internalTrafficPolicy: intern(stringAt(spec, 'internalTrafficPolicy')),
      healthCheckNodePort: integerAt(spec, 'healthCheckNodePort', maxPort) ?? 0,
      sessionAffinity: intern(stringAt(spec, 'sessionAffinity')),
      ports: listAt(spec, 'ports', (port) => servicePortOf(fieldsOf(port), intern)),
    };
    const timeout = objectAt(spec, 'sessionAffinityConfig', (config) =>
      objectAt(config, 'clientIP', (clientIP) => integerAt(clientIP, 'timeoutSeconds', maxInt32)),
    );
    if (timeout !== undefined) service.affinityTimeoutSeconds = timeout;
    const annotations = ownAnnotations(meta);
    if (annotations) service.annotations = annotations;
    return service;
  });
}

function originOf(metadata: Fields): Pick<ServiceObject, 'uid' | 'createdAt'> {
  const seconds = Date.parse(stringAt(metadata, 'creationTimestamp')) / 1000;
  return { uid: stringAt(metadata, 'uid'), createdAt: Number.isNaN(seconds) ? 0 : Math.trunc(seconds) };
}

function ingressOf(item: unknown, intern: Intern): ServiceObject['loadBalancerIngress'][number] {
  const ingress = fieldsOf(item);
  const ip = stringAt(ingress, 'ip');
  const ipMode = optionalStringAt(ingress, 'ipMode');
  return ipMode === undefined ? { ip } : { ip, ipMode: intern(ipMode) };
}

function servicePortOf(port: Fields, intern: Intern): ServicePortObject {
  return {
    name: intern(stringAt(port, 'name')),
    protocol: protocolOf(port, intern),
    port: integerAt(port, 'port', maxPort) ?? 0,
    nodePort: integerAt(port, 'nodePort', maxPort) ?? 0,
  };
}

/** Objects from manifests may lack the protocol; the API's default is TCP. */
function protocolOf(port: Fields, intern: Intern): string {
  return intern(stringAt(port, 'protocol') || 'TCP');
}

function sliceOf(object: Fields, meta: Metadata, intern: Intern): EndpointSliceObject {
  const pods: string[] = [];
  const slice: Mutable<EndpointSliceObject> = {
    namespace: intern(meta.namespace),
    name: meta.name,
    resourceVersion: meta.resourceVersion,
    serviceName: intern(annotationAt(meta, 'labels', serviceNameLabel) ?? ''),
    addressType: intern(stringAt(object, 'addressType')),
    endpoints: listAt(object, 'endpoints', (item) => {
      const endpoint = fieldsOf(item);
      pods.push(podOf(endpoint, meta.namespace));
      return endpointOf(endpoint, intern);
    }),
    ports: listAt(object, 'ports', (port) => slicePortOf(fieldsOf(port), intern)),
  };
  const triggerTime = annotationAt(meta, 'annotations', triggerTimeAnnotation);
  if (triggerTime !== undefined) slice.triggerTime = triggerTime;
  const packed = packNames(pods);
  if (packed !== undefined) slice.pods = packed;
  return slice;
}

function podOf(endpoint: Fields, namespace: string): string {
  return objectAt(endpoint, 'targetRef', (target) =>
    podName(
      {
        kind: stringAt(target, 'kind'),
        namespace: stringAt(target, 'namespace'),
        name: stringAt(target, 'name'),
      },
      namespace,
    ),
  );
}

function endpointOf(raw: Fields, intern: Intern): EndpointObject {
  const endpoint: Mutable<EndpointObject> = objectAt(raw, 'conditions', (conditions) => ({
    ready: booleanAt(conditions, 'ready') ?? true,
    serving: booleanAt(conditions, 'serving') ?? true,
    terminating: booleanAt(conditions, 'terminating') ?? false,
  }));
  const address = stringsAt(raw, 'addresses')[0];
  if (address !== undefined) endpoint.address = address;
  const nodeName = optionalStringAt(raw, 'nodeName');
  if (nodeName !== undefined) endpoint.nodeName = intern(nodeName);
  const zone = optionalStringAt(raw, 'zone');
  if (zone !== undefined) endpoint.zone = intern(zone);
  objectAt(raw, 'hints', (hints) => {
    const zones = namesAt(hints, 'forZones', intern);
    if (zones.length > 0) endpoint.zoneHints = zones;
    const nodes = namesAt(hints, 'forNodes', intern);
    if (nodes.length > 0) endpoint.nodeHints = nodes;
  });
  return endpoint;
}

function namesAt(hints: Fields, key: string, intern: Intern): readonly string[] {
  const names = listAt(hints, key, (hint) => intern(stringAt(fieldsOf(hint), 'name')));
  return names.length === 1 ? onlyHint(names[0] ?? '') : names;
}

function slicePortOf(raw: Fields, intern: Intern): SlicePortObject {
  const port: Mutable<SlicePortObject> = { protocol: protocolOf(raw, intern) };
  const name = optionalStringAt(raw, 'name');
  if (name !== undefined) port.name = intern(name);
  const number = integerAt(raw, 'port', maxPort);
  if (number !== undefined) port.port = number;
  return port;
}

function nodeOf(object: Fields, meta: Metadata, intern: Intern): NodeObject {
  const labels = within('metadata.labels', () =>
    Object.keys(meta.labels).map((key) => [intern(key), intern(stringAt(meta.labels, key))] as const),
  );
  const addresses = objectAt(object, 'status', (status) =>
    listAt(status, 'addresses', (item) => {
      const address = fieldsOf(item);
      return { type: intern(stringAt(address, 'type')), address: stringAt(address, 'address') };
    }),
  );
  return objectAt(object, 'spec', (spec) => ({
    name: intern(meta.name),
    resourceVersion: meta.resourceVersion,
    labels: Object.fromEntries(labels),
    addresses: addresses.filter(isNodeIP),
    podCIDRs: stringsAt(spec, 'podCIDRs'),
    taintKeys: listAt(spec, 'taints', (taint) => intern(stringAt(fieldsOf(taint), 'key'))),
    deleting: meta.deleting,
  }));
}

export function isNodeIP({ type }: { readonly type: string }): boolean {
  return type === 'InternalIP' || type === 'ExternalIP';
}

function serviceCIDROf(object: Fields, meta: Metadata): ServiceCIDRObject {
  const cidrs = objectAt(object, 'spec', (spec) => stringsAt(spec, 'cidrs'));
  return { name: meta.name, resourceVersion: meta.resourceVersion, cidrs };
}

/**
 * Converts a legacy `v1` Endpoints object to EndpointSlices: one per subset and family, named after both, so that the
 * same object always gives the same slices.
 */
export function decodeEndpoints(raw: unknown, intern: Intern): EndpointSliceObject[] {
  return decodeObject('Endpoints', raw, (object, meta) => {
    const subsets = listAt(object, 'subsets', (subset) => subsetOf(fieldsOf(subset), meta.namespace, intern));
    return subsets.flatMap(({ ports, addresses }, i) =>
      families.flatMap((family) => {
        const members = addresses.filter((address) => address.family === family);
        if (members.length === 0) return [];
        const pods = packNames(members.map(({ pod }) => pod));
        return {
          namespace: intern(meta.namespace),
          name: `${meta.name}-${i}-${family.toLowerCase()}`,
          resourceVersion: meta.resourceVersion,
          serviceName: intern(meta.name),
          addressType: family,
          endpoints: members.map(({ endpoint }) => endpoint),
          ...(pods !== undefined && { pods }),
          ports,
        };
      }),
    );
  });
}

interface Subset {
  readonly ports: readonly SlicePortObject[];
  readonly addresses: readonly Address[];
}

interface Address {
  readonly family: Family;
  readonly endpoint: EndpointObject;
  readonly pod: string;
}

function subsetOf(subset: Fields, namespace: string, intern: Intern): Subset {
  // An unnamed port of an Endpoints object has the empty name, which a slice port distinguishes from null.
  const ports = listAt(subset, 'ports', (port) => ({ name: '', ...slicePortOf(fieldsOf(port), intern) }));
  const addressesAt = (key: string, ready: boolean) =>
    listAt(subset, key, (item) => addressOf(fieldsOf(item), ready, namespace, intern));
  return {
    ports,
    addresses: [...addressesAt('addresses', true), ...addressesAt('notReadyAddresses', false)],
  };
}

function addressOf(raw: Fields, ready: boolean, namespace: string, intern: Intern): Address {
  const address = stringAt(raw, 'ip');
  const family = familyOf(address);
  if (family === undefined) throw new FieldFault('ip', raw.ip, 'an IP address');
  const endpoint = { address, ready, serving: ready, terminating: false };
  const nodeName = optionalStringAt(raw, 'nodeName');
  return {
    family,
    endpoint: nodeName === undefined ? endpoint : { ...endpoint, nodeName: intern(nodeName) },
    pod: podOf(raw, namespace),
  };
}
