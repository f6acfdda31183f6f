/**
 * Decoders from protobuf to the types of model/objects.ts: the same fields and the same rules as the decoders of JSON.
 * Each message has one table of its fields in use. The numbers are those of the Kubernetes API.
 */
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
} from '../../model/objects.ts';
import { annotationPrefix } from '../../model/own-annotations.ts';
import { isNodeIP, maxInt32, maxPort, serviceNameLabel, triggerTimeAnnotation } from '../decode.ts';
import { FieldFault, nothing } from '../fields.ts';
import { onlyHint } from '../only-hint.ts';
import { integer, type Message, part, shared, sharedTexts, text, texts } from './message.ts';
import type { WireReader } from './wire-reader.ts';

/** Call one when the reader is at the beginning of the object. Throws `FieldFault` for a wrong field. */
export const decoders: { readonly [R in ResourceName]: (reader: WireReader) => Resources[R] } = {
  services: serviceOf,
  endpointSlices: sliceOf,
  nodes: nodeOf,
  serviceCIDRs: serviceCIDROf,
};

/** An object under construction: its lists grow. */
type Draft<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer Item)[] ? Item[] : T[K] };
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function checkName({ name }: { readonly name: string }): void {
  if (name === '') throw new FieldFault('metadata.name', undefined, 'a name');
}

/** A list as it is kept: without spare room, and one shared list for all that are empty. */
function kept<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? nothing : list.slice();
}

const resourceVersion: Message<{ resourceVersion: string }> = {
  6: (reader, object) => {
    object.resourceVersion = reader.text('resourceVersion');
  },
};

const namespaced: Message<{ namespace: string; resourceVersion: string }> = {
  3: (reader, object) => {
    object.namespace = reader.shared('namespace');
  },
  ...resourceVersion,
};

type ServiceDraft = Draft<ServiceObject>;

const time: Message<{ seconds: number }> = {
  1: (reader, target) => {
    target.seconds = reader.long('seconds');
  },
};

const ownPrefix = Buffer.from(annotationPrefix);

const serviceMetadata: Message<ServiceDraft> = {
  1: shared('name'),
  ...namespaced,
  5: text('uid'),
  8: (reader, service) => {
    service.createdAt = reader.message('creationTimestamp', { seconds: 0 }, time).seconds;
  },
  12: (reader, service) => {
    const entry = reader.entryUnder('annotations', ownPrefix);
    if (entry) service.annotations = { ...service.annotations, [entry.name]: entry.value };
  },
};

const servicePort: Message<Mutable<ServicePortObject>> = {
  1: shared('name'),
  2: readProtocol,
  3: integer('port', maxPort),
  5: integer('nodePort', maxPort),
};

/** Objects from other servers may lack the protocol; the API's default is TCP. */
function readProtocol(reader: WireReader, port: { protocol: string }): void {
  port.protocol = reader.shared('protocol') || 'TCP';
}

const clientIPConfig: Message<ServiceDraft> = {
  1: (reader, service) => {
    service.affinityTimeoutSeconds = reader.integer('timeoutSeconds', maxInt32);
  },
};

const serviceSpec: Message<ServiceDraft> = {
  1: (reader, { ports }) => {
    const port = { name: '', protocol: 'TCP', port: 0, nodePort: 0 };
    ports.push(reader.message('ports', port, servicePort, ports.length));
  },
  3: text('clusterIP'),
  4: shared('type'),
  5: texts('externalIPs'),
  7: shared('sessionAffinity'),
  9: sharedTexts('loadBalancerSourceRanges'),
  11: shared('externalTrafficPolicy'),
  12: integer('healthCheckNodePort', maxPort),
  14: part('sessionAffinityConfig', { 1: part('clientIP', clientIPConfig) }),
  18: texts('clusterIPs'),
  19: sharedTexts('ipFamilies'),
  22: shared('internalTrafficPolicy'),
};

const ingress: Message<Mutable<ServiceObject['loadBalancerIngress'][number]>> = {
  1: text('ip'),
  3: (reader, target) => {
    target.ipMode = reader.shared('ipMode');
  },
};

const loadBalancerStatus: Message<ServiceDraft> = {
  1: (reader, { loadBalancerIngress: list }) => {
    list.push(reader.message('ingress', { ip: '' }, ingress, list.length));
  },
};

const service: Message<ServiceDraft> = {
  1: part('metadata', serviceMetadata),
  2: part('spec', serviceSpec),
  3: part('status', { 1: part('loadBalancer', loadBalancerStatus) }),
};

function serviceOf(reader: WireReader): ServiceObject {
  const draft: ServiceDraft = {
    namespace: '',
    name: '',
    resourceVersion: '',
    uid: '',
    createdAt: 0,
    type: '',
    clusterIP: '',
    clusterIPs: [],
    ipFamilies: [],
    externalIPs: [],
    loadBalancerIngress: [],
    loadBalancerSourceRanges: [],
    externalTrafficPolicy: '',
    internalTrafficPolicy: '',
    healthCheckNodePort: 0,
    sessionAffinity: '',
    ports: [],
  };
  reader.read(draft, service);
  checkName(draft);
  return {
    ...draft,
    clusterIPs: kept(draft.clusterIPs),
    ipFamilies: kept(draft.ipFamilies),
    externalIPs: kept(draft.externalIPs),
    loadBalancerIngress: kept(draft.loadBalancerIngress),
    loadBalancerSourceRanges: kept(draft.loadBalancerSourceRanges),
    ports: kept(draft.ports),
  };
}

type SliceDraft = Omit<Draft<EndpointSliceObject>, 'pods'> & {
  /** The endpoint that is being read: one for all, which saves most of the garbage of a list. */
  readonly endpoint: EndpointDraft;
};

const serviceNameKey = Buffer.from(serviceNameLabel);
const triggerTimeKey = Buffer.from(triggerTimeAnnotation);

const sliceMetadata: Message<SliceDraft> = {
  1: text('name'),
  ...namespaced,
  11: (reader, slice) => {
    const name = reader.valueOf('labels', serviceNameKey);
    if (name !== undefined) slice.serviceName = reader.intern(name);
  },
  12: (reader, slice) => {
    const value = reader.valueOf('annotations', triggerTimeKey);
    if (value !== undefined) slice.triggerTime = value;
  },
};

interface EndpointDraft {
  address: string | undefined;
  ready: boolean;
  serving: boolean;
  terminating: boolean;
  /** What the endpoint refers to. */
  isPod: boolean;
  podNamespace: string;
  /** Where the name of the pod lies. */
  podStart: number;
  podEnd: number;
  nodeName: string | undefined;
  zone: string | undefined;
  zoneHints: readonly string[] | undefined;
  nodeHints: readonly string[] | undefined;
}

function emptyEndpoint(): EndpointDraft {
  const draft = {} as EndpointDraft;
  clear(draft);
  return draft;
}

function clear(draft: EndpointDraft): void {
  draft.address = undefined;
  draft.ready = true;
  draft.serving = true;
  draft.terminating = false;
  draft.isPod = false;
  draft.podNamespace = '';
  draft.podStart = 0;
  draft.podEnd = 0;
  draft.nodeName = undefined;
  draft.zone = undefined;
  draft.zoneHints = undefined;
  draft.nodeHints = undefined;
}

const conditions: Message<EndpointDraft> = {
  1: (reader, endpoint) => {
    endpoint.ready = reader.boolean('ready');
  },
  2: (reader, endpoint) => {
    endpoint.serving = reader.boolean('serving');
  },
  3: (reader, endpoint) => {
    endpoint.terminating = reader.boolean('terminating');
  },
};

const podKind = Buffer.from('Pod');

const target: Message<EndpointDraft> = {
  1: (reader, endpoint) => {
    endpoint.isPod = reader.isText('kind', podKind);
  },
  2: (reader, endpoint) => {
    endpoint.podNamespace = reader.shared('namespace');
  },
  3: (reader, endpoint) => {
    const { start, end } = reader.range('name', 'a string');
    endpoint.podStart = start;
    endpoint.podEnd = end;
  },
};

/** ForZone and ForNode. */
const hint: Message<{ name: string }> = { 1: shared('name') };

const hints: Message<EndpointDraft> = {
  1: (reader, endpoint) => {
    endpoint.zoneHints = withHint(reader, 'forZones', endpoint.zoneHints);
  },
  2: (reader, endpoint) => {
    endpoint.nodeHints = withHint(reader, 'forNodes', endpoint.nodeHints);
  },
};

function withHint(reader: WireReader, name: string, known: readonly string[] = nothing): readonly string[] {
  const hinted = reader.message(name, { name: '' }, hint, known.length).name;
  return known.length === 0 ? onlyHint(hinted) : [...known, hinted];
}

const endpoint: Message<EndpointDraft> = {
  1: (reader, draft) => {
    if (draft.address === undefined) draft.address = reader.text('addresses', 0);
    else reader.skip();
  },
  2: part('conditions', conditions),
  4: part('targetRef', target),
  6: (reader, draft) => {
    draft.nodeName = reader.shared('nodeName');
  },
  7: (reader, draft) => {
    draft.zone = reader.shared('zone');
  },
  8: part('hints', hints),
};

/** Objects that are written at once take less memory than those that get their properties one by one. */
function endpointOf(draft: EndpointDraft): EndpointObject {
  const { address, ready, serving, terminating, nodeName, zone, zoneHints, nodeHints } = draft;
  let object: Mutable<EndpointObject>;
  if (address === undefined || nodeName === undefined) {
    object = { ready, serving, terminating };
    if (address !== undefined) object.address = address;
    if (nodeName !== undefined) object.nodeName = nodeName;
    if (zone !== undefined) object.zone = zone;
  } else if (zone === undefined) {
    object = { address, ready, serving, terminating, nodeName };
  } else if (zoneHints === undefined) {
    object = { address, ready, serving, terminating, nodeName, zone };
  } else {
    object = { address, ready, serving, terminating, nodeName, zone, zoneHints };
  }
  if (zoneHints !== undefined) object.zoneHints = zoneHints;
  if (nodeHints !== undefined) object.nodeHints = nodeHints;
  return object;
}

const slicePort: Message<Mutable<SlicePortObject>> = {
  1: (reader, port) => {
    port.name = reader.shared('name');
  },
  2: readProtocol,
  3: (reader, port) => {
    port.port = reader.integer('port', maxPort);
  },
};

/** Packs the name of the pod that the endpoint with this index refers to, as `podName` gives it. */
function packPod(reader: WireReader, draft: EndpointDraft, namespace: string, index: number): void {
  const { isPod, podNamespace, podStart, podEnd } = draft;
  const path = () => `endpoints[${index}].targetRef.name`;
  if (!isPod || podStart === podEnd) reader.names.addNone();
  else if (podNamespace === '' || podNamespace === namespace) reader.packName(podStart, podEnd, path);
  else reader.names.addText(`${podNamespace}/${reader.textOf(podStart, podEnd, path)}`);
}

/** Its metadata is read first, wherever it lies: the names of pods depend on the namespace. */
const sliceHead: Message<SliceDraft> = { 1: part('metadata', sliceMetadata) };

const sliceBody: Message<SliceDraft> = {
  2: (reader, { endpoints, endpoint: draft, namespace }) => {
    clear(draft);
    reader.message('endpoints', draft, endpoint, endpoints.length);
    packPod(reader, draft, namespace, endpoints.length);
    endpoints.push(endpointOf(draft));
  },
  3: (reader, { ports }) => {
    const draft: Mutable<SlicePortObject> = { protocol: 'TCP' };
    ports.push(reader.message('ports', draft, slicePort, ports.length));
  },
  4: shared('addressType'),
};

function sliceOf(reader: WireReader): EndpointSliceObject {
  const draft: SliceDraft = {
    namespace: '',
    name: '',
    resourceVersion: '',
    serviceName: '',
    addressType: '',
    endpoints: [],
    ports: [],
    endpoint: emptyEndpoint(),
  };
  reader.names.begin();
  reader.preview(draft, sliceHead);
  reader.read(draft, sliceBody);
  checkName(draft);
  const { namespace, name, resourceVersion, serviceName, addressType, triggerTime } = draft;
  const endpoints = kept(draft.endpoints);
  const ports = kept(draft.ports);
  const object: Mutable<EndpointSliceObject> = {
    namespace,
    name,
    resourceVersion,
    serviceName,
    addressType,
    endpoints,
    ports,
  };
  if (triggerTime !== undefined) object.triggerTime = triggerTime;
  const pods = reader.names.end();
  if (pods !== undefined) object.pods = pods;
  return object;
}

type NodeDraft = Omit<Draft<NodeObject>, 'labels'> & { readonly labels: [key: string, value: string][] };

const label: Message<{ key: string; value: string }> = { 1: shared('key'), 2: shared('value') };

const nodeMetadata: Message<NodeDraft> = {
  1: shared('name'),
  ...resourceVersion,
  9: (reader, node) => {
    reader.skip();
    node.deleting = true;
  },
  11: (reader, { labels }) => {
    const { key, value } = reader.message('labels', { key: '', value: '' }, label);
    labels.push([key, value]);
  },
};

const taint: Message<{ key: string }> = { 1: shared('key') };

const nodeSpec: Message<NodeDraft> = {
  5: (reader, { taintKeys }) => {
    taintKeys.push(reader.message('taints', { key: '' }, taint, taintKeys.length).key);
  },
  7: texts('podCIDRs'),
};

const nodeAddress: Message<Mutable<NodeObject['addresses'][number]>> = {
  1: shared('type'),
  2: text('address'),
};

const nodeStatus: Message<NodeDraft> = {
  5: (reader, { addresses }) => {
    addresses.push(reader.message('addresses', { type: '', address: '' }, nodeAddress, addresses.length));
  },
};

const node: Message<NodeDraft> = {
  1: part('metadata', nodeMetadata),
  2: part('spec', nodeSpec),
  3: part('status', nodeStatus),
};

function nodeOf(reader: WireReader): NodeObject {
  const draft: NodeDraft = {
    name: '',
    resourceVersion: '',
    labels: [],
    addresses: [],
    podCIDRs: [],
    taintKeys: [],
    deleting: false,
  };
  reader.read(draft, node);
  checkName(draft);
  return { ...draft, labels: Object.fromEntries(draft.labels), addresses: draft.addresses.filter(isNodeIP) };
}

type ServiceCIDRDraft = Draft<ServiceCIDRObject>;

const serviceCIDRMetadata: Message<ServiceCIDRDraft> = { 1: text('name'), ...resourceVersion };

const serviceCIDR: Message<ServiceCIDRDraft> = {
  1: part('metadata', serviceCIDRMetadata),
  2: part('spec', { 1: texts('cidrs') }),
};

function serviceCIDROf(reader: WireReader): ServiceCIDRObject {
  const draft = reader.read<ServiceCIDRDraft>({ name: '', resourceVersion: '', cidrs: [] }, serviceCIDR);
  checkName(draft);
  return draft;
}
