import { createHash } from 'node:crypto';
import { decodeEndpoints, decoders } from '../../kube/decode.ts';
import { type Fields, isFields } from '../../kube/fields.ts';
import type { Intern } from '../../lib/intern.ts';
import type { ResourceName, Resources } from '../../model/objects.ts';
import { defaultNode, defaultService, defaultSlice } from './defaults.ts';
import type { Position } from './documents.ts';

/** An object of a manifest and its position. */
export interface Entry<R extends ResourceName> {
  readonly key: string;
  readonly object: Resources[R];
  /** Kind and name, for messages. */
  readonly subject: string;
  readonly position: Position | undefined;
  /** From a legacy Endpoints object, which is used only while its Service has no EndpointSlice. */
  readonly mirrored: boolean;
}

export type Entries = { readonly [R in ResourceName]: Entry<R>[] };

export interface DecodeContext {
  readonly intern: Intern;
  /** Nodes with other names are left out. */
  readonly nodeName: string;
  readonly position: Position | undefined;
}

export function noEntries(): Entries {
  return { services: [], endpointSlices: [], nodes: [], serviceCIDRs: [] };
}

/** Returns the description of an object that the proxy cannot use. */
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
 * Decodes one object with API defaults into its list, unless it does not match the selectors that the proxy sends to an
 * API server. Returns the description of an object that the proxy cannot use. Throws `ObjectError`.
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
  const entry = entryOf('Service', service, position);
  if (service.clusterIP === '' && service.type !== 'ExternalName') {
    return `${entry.subject} (no spec.clusterIP, and no API server to allocate one)`;
  }
  into.services.push(entry);
  return undefined;
}

function addSlice(raw: Fields, into: Entries, { intern, position }: DecodeContext): undefined {
  const slice = defaultSlice(decoders.endpointSlices(raw, intern));
  if (hasLabel(raw, 'service.kubernetes.io/headless')) return;
  into.endpointSlices.push(entryOf('EndpointSlice', slice, position));
}

function addEndpoints(raw: Fields, into: Entries, { intern, position }: DecodeContext): undefined {
  const slices = decodeEndpoints(raw, intern).map(defaultSlice);
  if (hasLabel(raw, 'service.kubernetes.io/headless')) return;
  for (const slice of slices) {
    const subject = `Endpoints ${slice.namespace}/${slice.serviceName}`;
    into.endpointSlices.push({ ...entryOf('EndpointSlice', slice, position), subject, mirrored: true });
  }
}

function addNode(raw: Fields, into: Entries, { intern, nodeName, position }: DecodeContext): undefined {
  const node = defaultNode(decoders.nodes(raw, intern), raw);
  if (node.name === nodeName) into.nodes.push(entryOf('Node', node, position));
}

function addServiceCIDR(raw: Fields, into: Entries, { intern, position }: DecodeContext): undefined {
  into.serviceCIDRs.push(entryOf('ServiceCIDR', decoders.serviceCIDRs(raw, intern), position));
}

function hasLabel(raw: Fields, label: string): boolean {
  const labels = isFields(raw.metadata) ? raw.metadata.labels : undefined;
  return isFields(labels) && Object.hasOwn(labels, label);
}

/** Sets the object's version to a hash of its content: equal versions mean equal objects. */
function entryOf<T extends { readonly namespace?: string; readonly name: string }>(
  kind: string,
  object: T,
  position: Position | undefined,
) {
  const key = object.namespace === undefined ? object.name : `${object.namespace}/${object.name}`;
  const content = JSON.stringify({ ...object, resourceVersion: '' });
  const resourceVersion = createHash('sha256').update(content).digest('hex').slice(0, 16);
  return {
    key,
    object: { ...object, resourceVersion },
    subject: `${kind} ${key}`,
    position,
    mirrored: false,
  };
}
