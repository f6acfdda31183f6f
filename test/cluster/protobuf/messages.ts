/**
 * The messages of the Kubernetes API that the test API server sends: which number each JSON field has, and when it is
 * written. All fields of these kinds are here, also those that kube-proxy does not read, so that sizes are real.
 */

export type Type =
  | 'string'
  | 'integer'
  | 'boolean'
  /** Bytes as they are, for example a message that is encoded already. */
  | 'bytes'
  /** An instant, in JSON a text of RFC 3339. */
  | 'time'
  | 'microTime'
  /** A JSON text inside a message. */
  | 'fieldsV1'
  | 'quantity'
  | 'intOrString'
  | Message;

/**
 * When a field is written: `always`, even if it is empty, as Kubernetes does for fields that cannot be absent; `present`,
 * if the object has it; `each`, once per element of an array; `map`, once per entry.
 */
export interface Field {
  readonly number: number;
  readonly type: Type;
  readonly written: 'always' | 'present' | 'each' | 'map';
}

/** Fields by JSON name, in order of their numbers. */
export interface Message {
  readonly [name: string]: Field;
}

const always = (number: number, type: Type): Field => ({ number, type, written: 'always' });
const present = (number: number, type: Type): Field => ({ number, type, written: 'present' });
const each = (number: number, type: Type): Field => ({ number, type, written: 'each' });
const map = (number: number, type: Type): Field => ({ number, type, written: 'map' });

const ownerReference: Message = {
  kind: always(1, 'string'),
  name: always(3, 'string'),
  uid: always(4, 'string'),
  apiVersion: always(5, 'string'),
  controller: present(6, 'boolean'),
  blockOwnerDeletion: present(7, 'boolean'),
};

const managedFieldsEntry: Message = {
  manager: always(1, 'string'),
  operation: always(2, 'string'),
  apiVersion: always(3, 'string'),
  time: present(4, 'time'),
  fieldsType: always(6, 'string'),
  fieldsV1: present(7, 'fieldsV1'),
  subresource: always(8, 'string'),
};

const objectMeta: Message = {
  name: always(1, 'string'),
  generateName: always(2, 'string'),
  namespace: always(3, 'string'),
  selfLink: always(4, 'string'),
  uid: always(5, 'string'),
  resourceVersion: always(6, 'string'),
  generation: always(7, 'integer'),
  creationTimestamp: always(8, 'time'),
  deletionTimestamp: present(9, 'time'),
  deletionGracePeriodSeconds: present(10, 'integer'),
  labels: map(11, 'string'),
  annotations: map(12, 'string'),
  ownerReferences: each(13, ownerReference),
  finalizers: each(14, 'string'),
  managedFields: each(17, managedFieldsEntry),
};

const listMeta: Message = {
  selfLink: always(1, 'string'),
  resourceVersion: always(2, 'string'),
  continue: always(3, 'string'),
  remainingItemCount: present(4, 'integer'),
};

/** The items are encoded already. */
export const list: Message = { metadata: always(1, listMeta), items: each(2, 'bytes') };

const condition: Message = {
  type: always(1, 'string'),
  status: always(2, 'string'),
  observedGeneration: always(3, 'integer'),
  lastTransitionTime: always(4, 'time'),
  reason: always(5, 'string'),
  message: always(6, 'string'),
};

const statusCause: Message = {
  reason: always(1, 'string'),
  message: always(2, 'string'),
  field: always(3, 'string'),
};

const statusDetails: Message = {
  name: always(1, 'string'),
  group: always(2, 'string'),
  kind: always(3, 'string'),
  causes: each(4, statusCause),
  retryAfterSeconds: always(5, 'integer'),
  uid: always(6, 'string'),
};

const status: Message = {
  metadata: always(1, listMeta),
  status: always(2, 'string'),
  message: always(3, 'string'),
  reason: always(4, 'string'),
  details: present(5, statusDetails),
  code: always(6, 'integer'),
};

const typeMeta: Message = { apiVersion: always(1, 'string'), kind: always(2, 'string') };

/** The envelope of every object. `raw` holds the object. */
export const unknownObject: Message = {
  typeMeta: always(1, typeMeta),
  raw: present(2, 'bytes'),
  contentEncoding: always(3, 'string'),
  contentType: always(4, 'string'),
};

export const watchEvent: Message = {
  type: always(1, 'string'),
  object: always(2, { raw: present(1, 'bytes') }),
};

const servicePort: Message = {
  name: always(1, 'string'),
  protocol: always(2, 'string'),
  port: always(3, 'integer'),
  targetPort: always(4, 'intOrString'),
  nodePort: always(5, 'integer'),
  appProtocol: present(6, 'string'),
};

const serviceSpec: Message = {
  ports: each(1, servicePort),
  selector: map(2, 'string'),
  clusterIP: always(3, 'string'),
  type: always(4, 'string'),
  externalIPs: each(5, 'string'),
  sessionAffinity: always(7, 'string'),
  loadBalancerIP: always(8, 'string'),
  loadBalancerSourceRanges: each(9, 'string'),
  externalName: always(10, 'string'),
  externalTrafficPolicy: always(11, 'string'),
  healthCheckNodePort: always(12, 'integer'),
  publishNotReadyAddresses: always(13, 'boolean'),
  sessionAffinityConfig: present(14, { clientIP: present(1, { timeoutSeconds: present(1, 'integer') }) }),
  ipFamilyPolicy: present(17, 'string'),
  clusterIPs: each(18, 'string'),
  ipFamilies: each(19, 'string'),
  allocateLoadBalancerNodePorts: present(20, 'boolean'),
  loadBalancerClass: present(21, 'string'),
  internalTrafficPolicy: present(22, 'string'),
  trafficDistribution: present(23, 'string'),
};

const loadBalancerIngress: Message = {
  ip: always(1, 'string'),
  hostname: always(2, 'string'),
  ipMode: present(3, 'string'),
  ports: each(4, {
    port: always(1, 'integer'),
    protocol: always(2, 'string'),
    error: present(3, 'string'),
  }),
};

const service: Message = {
  metadata: always(1, objectMeta),
  spec: always(2, serviceSpec),
  status: always(3, {
    loadBalancer: always(1, { ingress: each(1, loadBalancerIngress) }),
    conditions: each(2, condition),
  }),
};

const objectReference: Message = {
  kind: always(1, 'string'),
  namespace: always(2, 'string'),
  name: always(3, 'string'),
  uid: always(4, 'string'),
  apiVersion: always(5, 'string'),
  resourceVersion: always(6, 'string'),
  fieldPath: always(7, 'string'),
};

const named: Message = { name: always(1, 'string') };

const endpoint: Message = {
  addresses: each(1, 'string'),
  conditions: always(2, {
    ready: present(1, 'boolean'),
    serving: present(2, 'boolean'),
    terminating: present(3, 'boolean'),
  }),
  hostname: present(3, 'string'),
  targetRef: present(4, objectReference),
  deprecatedTopology: map(5, 'string'),
  nodeName: present(6, 'string'),
  zone: present(7, 'string'),
  hints: present(8, { forZones: each(1, named), forNodes: each(2, named) }),
};

const endpointPort: Message = {
  name: present(1, 'string'),
  protocol: present(2, 'string'),
  port: present(3, 'integer'),
  appProtocol: present(4, 'string'),
};

const endpointSlice: Message = {
  metadata: always(1, objectMeta),
  endpoints: each(2, endpoint),
  ports: each(3, endpointPort),
  addressType: always(4, 'string'),
};

const nodeSpec: Message = {
  podCIDR: always(1, 'string'),
  externalID: always(2, 'string'),
  providerID: always(3, 'string'),
  unschedulable: always(4, 'boolean'),
  taints: each(5, {
    key: always(1, 'string'),
    value: always(2, 'string'),
    effect: always(3, 'string'),
    timeAdded: present(4, 'time'),
  }),
  podCIDRs: each(7, 'string'),
};

const nodeCondition: Message = {
  type: always(1, 'string'),
  status: always(2, 'string'),
  lastHeartbeatTime: always(3, 'time'),
  lastTransitionTime: always(4, 'time'),
  reason: always(5, 'string'),
  message: always(6, 'string'),
};

const nodeSystemInfo: Message = {
  machineID: always(1, 'string'),
  systemUUID: always(2, 'string'),
  bootID: always(3, 'string'),
  kernelVersion: always(4, 'string'),
  osImage: always(5, 'string'),
  containerRuntimeVersion: always(6, 'string'),
  kubeletVersion: always(7, 'string'),
  kubeProxyVersion: always(8, 'string'),
  operatingSystem: always(9, 'string'),
  architecture: always(10, 'string'),
  swap: present(11, { capacity: present(1, 'integer') }),
};

const nodeStatus: Message = {
  capacity: map(1, 'quantity'),
  allocatable: map(2, 'quantity'),
  phase: always(3, 'string'),
  conditions: each(4, nodeCondition),
  addresses: each(5, { type: always(1, 'string'), address: always(2, 'string') }),
  daemonEndpoints: always(6, { kubeletEndpoint: always(1, { Port: always(1, 'integer') }) }),
  nodeInfo: always(7, nodeSystemInfo),
  images: each(8, { names: each(1, 'string'), sizeBytes: always(2, 'integer') }),
  volumesInUse: each(9, 'string'),
  volumesAttached: each(10, { name: always(1, 'string'), devicePath: always(2, 'string') }),
  runtimeHandlers: each(12, {
    name: always(1, 'string'),
    features: present(2, {
      recursiveReadOnlyMounts: present(1, 'boolean'),
      userNamespaces: present(2, 'boolean'),
    }),
  }),
  features: present(13, { supplementalGroupsPolicy: present(1, 'boolean') }),
  declaredFeatures: each(14, 'string'),
};

const node: Message = {
  metadata: always(1, objectMeta),
  spec: always(2, nodeSpec),
  status: always(3, nodeStatus),
};

const serviceCIDR: Message = {
  metadata: always(1, objectMeta),
  spec: always(2, { cidrs: each(1, 'string') }),
  status: always(3, { conditions: each(1, condition) }),
};

const event: Message = {
  metadata: always(1, objectMeta),
  eventTime: always(2, 'microTime'),
  series: present(3, { count: always(1, 'integer'), lastObservedTime: always(2, 'microTime') }),
  reportingController: always(4, 'string'),
  reportingInstance: always(5, 'string'),
  action: always(6, 'string'),
  reason: always(7, 'string'),
  regarding: always(8, objectReference),
  related: present(9, objectReference),
  note: always(10, 'string'),
  type: always(11, 'string'),
  deprecatedSource: always(12, { component: always(1, 'string'), host: always(2, 'string') }),
  deprecatedFirstTimestamp: always(13, 'time'),
  deprecatedLastTimestamp: always(14, 'time'),
  deprecatedCount: always(15, 'integer'),
};

/** By kind. */
export const kinds: Readonly<Record<string, Message>> = {
  Service: service,
  EndpointSlice: endpointSlice,
  Node: node,
  ServiceCIDR: serviceCIDR,
  Event: event,
  Status: status,
};
