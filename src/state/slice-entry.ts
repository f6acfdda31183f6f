import { type Endpoint, sameEndpoint } from '../model/endpoint.ts';
import { canonicalIP, canonicalIPOf, type Family } from '../model/ip.ts';
import type { ObjectProblem } from '../model/object-problem.ts';
import type { EndpointObject, EndpointSliceObject, Protocol, SlicePortObject } from '../model/objects.ts';
import { sameStrings } from '../model/same-strings.ts';
import { isPortNumber, parseProtocol } from '../model/service-ports.ts';
import { findEndpoint, noEndpoints, type SortedEndpoints, sortUnique } from './sorted-endpoints.ts';

/** The endpoints of one port name and protocol. */
export interface PortEndpoints {
  readonly portName: string;
  readonly protocol: Protocol;
  readonly endpoints: SortedEndpoints;
}

/** A slice as received, and its endpoints by port. */
export interface SliceEntry {
  /** Replaced by a later version that is the same by `sameSlice`. */
  object: EndpointSliceObject;
  readonly lists: readonly PortEndpoints[];
}

export interface SliceContext {
  readonly family: Family;
  readonly nodeName: string;
  readonly onProblem: (problem: ObjectProblem) => void;
}

export function isSamePort(
  a: { readonly portName: string; readonly protocol: Protocol },
  b: { readonly portName: string; readonly protocol: Protocol },
): boolean {
  return a.portName === b.portName && a.protocol === b.protocol;
}

/**
 * Reads a slice. Endpoints that are equal to those of `previous` are reused, and ports with the same number share
 * their list. A port without endpoints has no list.
 */
export function readSlice(
  object: EndpointSliceObject,
  previous: SliceEntry | undefined,
  context: SliceContext,
): SliceEntry {
  const ips = object.endpoints.map((endpoint, i) => addressOf(endpoint, i, object, context));
  const lists: PortEndpoints[] = [];
  const byNumber = new Map<number, SortedEndpoints>();
  for (const [i, slicePort] of object.ports.entries()) {
    const port = readPort(slicePort, `ports[${i}]`, object, context);
    if (!port) continue;
    const before = previous?.lists.find((list) => isSamePort(list, port))?.endpoints ?? noEndpoints;
    const endpoints =
      byNumber.get(port.number) ?? buildList(object.endpoints, ips, port.number, before, context.nodeName);
    byNumber.set(port.number, endpoints);
    addList(lists, port, endpoints);
  }
  // A copy saves memory: an array that grew by push() has spare capacity, and there is one per slice.
  return { object, lists: lists.slice() };
}

function addList(lists: PortEndpoints[], port: Omit<PortEndpoints, 'endpoints'>, endpoints: SortedEndpoints) {
  if (endpoints.length === 0) return;
  const twin = lists.findIndex((list) => isSamePort(list, port));
  const before = lists[twin];
  const list = { portName: port.portName, protocol: port.protocol, endpoints };
  if (!before) lists.push(list);
  else lists[twin] = { ...list, endpoints: sortUnique([...before.endpoints, ...endpoints]) };
}

function buildList(
  objects: readonly EndpointObject[],
  ips: readonly (string | undefined)[],
  port: number,
  before: SortedEndpoints,
  nodeName: string,
): SortedEndpoints {
  const records: Endpoint[] = [];
  for (const [i, object] of objects.entries()) {
    const ip = ips[i];
    if (ip === undefined) continue;
    const record = endpointOf(object, ip, port, object.nodeName === nodeName);
    const known = findEndpoint(before, record.id);
    records.push(known && sameEndpoint(known, record) ? known : record);
  }
  const list = sortUnique(records);
  const unchanged = list.length === before.length && list.every((endpoint, i) => endpoint === before[i]);
  return unchanged ? before : list;
}

function endpointOf(object: EndpointObject, ip: string, port: number, isLocal: boolean): Endpoint {
  const { ready, serving, terminating, zoneHints = [], nodeHints = [] } = object;
  const id = flatHostPort(ip, port);
  // Written at once: a property that is added later takes 40 bytes more.
  const endpoint: Endpoint =
    zoneHints.length === 0
      ? { id, ip, port, isLocal, ready, serving, terminating }
      : { id, ip, port, isLocal, ready, serving, terminating, zoneHints };
  return nodeHints.length === 0 ? endpoint : { ...endpoint, nodeHints };
}

/** `joinHostPort` as a flat string: V8 keeps the parts of a concatenated one in memory, for every endpoint. */
function flatHostPort(ip: string, port: number): string {
  return [ip.includes(':') ? `[${ip}]` : ip, port].join(':');
}

function addressOf(
  endpoint: EndpointObject,
  index: number,
  slice: EndpointSliceObject,
  { family, onProblem }: SliceContext,
): string | undefined {
  const text = endpoint.address ?? '';
  const ip = canonicalIPOf(family, text);
  if (ip !== undefined) return ip;
  const fault = canonicalIP(text) === undefined ? 'is not an IP address' : `is not an ${family} address`;
  onProblem(problemOf(slice, `endpoints[${index}].addresses[0]`, text, fault));
  return undefined;
}

function readPort(
  port: SlicePortObject,
  field: string,
  slice: EndpointSliceObject,
  { onProblem }: SliceContext,
): { portName: string; protocol: Protocol; number: number } | undefined {
  const protocol = parseProtocol(port.protocol);
  if (port.name === undefined) onProblem(problemOf(slice, `${field}.name`, 'null', 'is not a port name'));
  else if (!isPortNumber(port.port)) {
    const value = String(port.port ?? null);
    onProblem(problemOf(slice, `${field}.port`, value, 'is not a port number from 1 to 65535'));
  } else if (!protocol) {
    onProblem(problemOf(slice, `${field}.protocol`, port.protocol, 'is not TCP, UDP or SCTP'));
  } else return { portName: port.name, protocol, number: port.port };
  return undefined;
}

export function problemOf(
  { namespace, name }: EndpointSliceObject,
  field: string,
  value: string,
  fault: string,
): ObjectProblem {
  return { kind: 'EndpointSlice', namespace, name, field, value, fault };
}

/**
 * Whether two slices come from the same write. A write counts as a change even if it touches only fields that are not
 * decoded. The contents are compared as well because not every source has resource versions; pods and zones are not,
 * since only people see them.
 */
export function sameSlice(a: EndpointSliceObject, b: EndpointSliceObject): boolean {
  if (a === b) return true;
  return (
    a.resourceVersion === b.resourceVersion &&
    a.serviceName === b.serviceName &&
    a.addressType === b.addressType &&
    a.triggerTime === b.triggerTime &&
    a.endpoints.length === b.endpoints.length &&
    a.ports.length === b.ports.length &&
    a.ports.every((port, i) => samePort(port, b.ports[i])) &&
    a.endpoints.every((endpoint, i) => sameEndpointObject(endpoint, b.endpoints[i]))
  );
}

function samePort(a: SlicePortObject, b: SlicePortObject | undefined): boolean {
  return a.name === b?.name && a.port === b?.port && a.protocol === b?.protocol;
}

function sameEndpointObject(a: EndpointObject, b: EndpointObject | undefined): boolean {
  return (
    a.address === b?.address &&
    a.ready === b?.ready &&
    a.serving === b?.serving &&
    a.terminating === b?.terminating &&
    a.nodeName === b?.nodeName &&
    sameStrings(a.zoneHints, b?.zoneHints) &&
    sameStrings(a.nodeHints, b?.nodeHints)
  );
}
