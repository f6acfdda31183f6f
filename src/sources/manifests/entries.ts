import { createHash } from 'node:crypto';
import { decodeEndpoints, decoders } from '../../kube/decode.ts';
import { type Fields, isFields } from '../../kube/fields.ts';
import type { Intern } from '../../lib/intern.ts';
import type { ResourceName, Resources } from '../../model/objects.ts';
import { defaultNode, defaultService, defaultSlice } from './defaults.ts';
import type { Position } from './documents.ts';

/** An object of a manifest and where it was found. */
export interface Entry<R extends ResourceName> {
  readonly key: string;
  readonly object: Resources[R];
  /** Kind and name as written, for messages. */
  readonly subject: string;
  readonly position: Position | undefined;
  /** Made from a legacy Endpoints object, which counts only while its Service has no EndpointSlice. */
  readonly mirrored: boolean;
}

export type Entries = { readonly [R in ResourceName]: Entry<R>[] };

export interface DecodeContext {
  readonly intern: Intern;
  /** Nodes of other names are left out, as the API server does on request. */
  readonly nodeName: string;
  readonly position: Position | undefined;
}

export function noEntries(): Entries {
  return { services: [], endpointSlices: [], nodes: [], serviceCIDRs: [] };
}

/** Returns what to call an object that the proxy can do nothing with. */
type Add = (raw: Fields, into: Entries, context: DecodeContext) => string | undefined;

const adders: ReadonlyMap<string, Add> = new Map([
  ['v1 Service', addService],
  ['v1 Endpoints', addEndpoints],
  ['v1 Node', addNode],
  ['discovery.k8s.io/v1 EndpointSlice', addSlice],
  ['networking.k8s.io/v1 ServiceCIDR', addServiceCIDR],
  ['networking.k8s.io/v1beta1 ServiceCIDR', addServiceCIDR],
]);

/**
 * Decodes one object, with API defaults, into its list unless the selectors that the proxy sends to an API
 * server would leave it out. Returns what to call it when the proxy can do nothing with it; throws `ObjectError`.
 */
export function addObject(
  apiVersion: string,
  kind: string,
  raw: Fields,
  into: Entries,
  context: DecodeContext,
): string | undefined {
  const add = adders.get(`${apiVersion} ${kind}`);
  return add ? add(raw, into, context) : `${apiVersion} ${kind}`;
}

function addService(raw: Fields, into: Entries, { intern, position }: DecodeContext): string | undefined {
  const service = defaultService(decoders.services(raw, intern));
  if (hasLabel(raw, 'service.kubernetes.io/service-proxy-name') || service.clusterIP === 'None')
    return undefined;
  const key = `${service.namespace}/${service.name}`;
  const subject = `Service ${key}`;
  if (service.clusterIP === '' && service.type !== 'ExternalName') {
    return `${subject} (no spec.clusterIP, and no API server to allocate one)`;
  }
  into.services.push({ key, object: versioned(service), subject, position, mirrored: false });
  return undefined;
}

function addSlice(raw: Fields, into: Entries, { intern, position }: DecodeContext): undefined {
  const slice = defaultSlice(decoders.endpointSlices(raw, intern));
  if (hasLabel(raw, 'service.kubernetes.io/headless')) return;
  const key = `${slice.namespace}/${slice.name}`;
  into.endpointSlices.push({
    key,
    object: versioned(slice),
    subject: `EndpointSlice ${key}`,
    position,
    mirrored: false,
  });
}

function addEndpoints(raw: Fields, into: Entries, { intern, position }: DecodeContext): undefined {
  const slices = decodeEndpoints(raw, intern).map(defaultSlice);
  if (hasLabel(raw, 'service.kubernetes.io/headless')) return;
  for (const slice of slices) {
    const subject = `Endpoints ${slice.namespace}/${slice.serviceName}`;
    const key = `${slice.namespace}/${slice.name}`;
    into.endpointSlices.push({ key, object: versioned(slice), subject, position, mirrored: true });
  }
}

function addNode(raw: Fields, into: Entries, { intern, nodeName, position }: DecodeContext): undefined {
  const node = defaultNode(decoders.nodes(raw, intern), raw);
  if (node.name !== nodeName) return;
  const subject = `Node ${node.name}`;
  into.nodes.push({ key: node.name, object: versioned(node), subject, position, mirrored: false });
}

function addServiceCIDR(raw: Fields, into: Entries, { intern, position }: DecodeContext): undefined {
  const object = versioned(decoders.serviceCIDRs(raw, intern));
  const subject = `ServiceCIDR ${object.name}`;
  into.serviceCIDRs.push({ key: object.name, object, subject, position, mirrored: false });
}

function hasLabel(raw: Fields, label: string): boolean {
  const labels = isFields(raw.metadata) ? raw.metadata.labels : undefined;
  return isFields(labels) && Object.hasOwn(labels, label);
}

/** Nobody numbers the versions of a file, so its content does: equal versions mean equal objects. */
function versioned<T extends { readonly resourceVersion: string }>(object: T): T {
  const content = JSON.stringify({ ...object, resourceVersion: '' });
  return { ...object, resourceVersion: createHash('sha256').update(content).digest('hex').slice(0, 16) };
}
