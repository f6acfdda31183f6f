import type { Endpoint } from '../model/endpoint.ts';
import type { EndpointSliceObject, Protocol } from '../model/objects.ts';
import type { ServicePort } from '../model/service-port.ts';
import { isSamePort, type PortEndpoints, type SliceEntry } from './slice-entry.ts';
import { mergeLists, noEndpoints, patchList, type SortedEndpoints } from './sorted-endpoints.ts';

type PortIdentity = { readonly portName: string; readonly protocol: Protocol };

/** Slices that one Service lost and gained; a changed slice is in both lists. */
export interface SliceChange {
  readonly removed: SliceEntry[];
  readonly added: SliceEntry[];
}

const nothing: readonly never[] = [];

/** The ports of one Service, its slices, and the merged endpoints. */
export class ServiceRecord {
  readonly name: string;
  ports: readonly ServicePort[] = nothing;
  /** Whether a port wants resets for endpoints that are gone, or did until the Service was deleted. */
  resetsDeparted = false;
  /** The result of `countEndpoints` that is part of the total. */
  counted = 0;
  #slices: readonly SliceEntry[] = nothing;
  #lists: readonly PortEndpoints[] = nothing;

  constructor(name: string) {
    this.name = name;
  }

  get isEmpty(): boolean {
    return this.ports.length === 0 && this.#slices.length === 0;
  }

  endpoints(port: PortIdentity): SortedEndpoints {
    return listFor(this.#lists, port);
  }

  get slices(): readonly SliceEntry[] {
    return this.#slices;
  }

  /** The slices as received, sorted by name. */
  sliceObjects(): readonly EndpointSliceObject[] {
    return this.#slices.map(({ object }) => object);
  }

  /** Endpoints of the Service's own ports, usable or not. */
  countEndpoints(): number {
    return this.ports.reduce((sum, port) => sum + this.endpoints(port).length, 0);
  }

  /** Distinct addresses with a ready endpoint on this node, over all ports. */
  countLocalReady(): number {
    const local: string[] = [];
    for (const { endpoints } of this.#lists) {
      for (const { isLocal, ready, ip } of endpoints) if (isLocal && ready) local.push(ip);
    }
    return local.length < 2 ? local.length : new Set(local).size;
  }

  apply(change: SliceChange): void {
    const before = this.#slices;
    this.#slices = replaceSlices(before, change);
    const [first] = this.#slices;
    // The commonest case by far needs no merged lists.
    if (this.#slices.length <= 1) this.#lists = first?.lists ?? nothing;
    else this.#lists = this.#mergedLists(before, change);
  }

  #mergedLists(before: readonly SliceEntry[], change: SliceChange): readonly PortEndpoints[] {
    const touched = distinctPorts([...change.removed, ...change.added]);
    const lists = this.#lists.filter((list) => !touched.some((port) => isSamePort(list, port)));
    for (const { portName, protocol } of touched) {
      const endpoints = this.#mergedList({ portName, protocol }, before, change);
      if (endpoints.length > 0) lists.push({ portName, protocol, endpoints });
    }
    return lists;
  }

  #mergedList(port: PortIdentity, before: readonly SliceEntry[], change: SliceChange): SortedEndpoints {
    const current = listFor(this.#lists, port);
    // If an endpoint is in two slices, removing one record may uncover the other: that needs a merge.
    const shadowed = before.reduce((sum, entry) => sum + listFor(entry.lists, port).length, 0);
    if (current.length > 0 && shadowed === current.length) {
      const [removed, added] = difference(recordsFor(change.removed, port), recordsFor(change.added, port));
      if (removed.length === 0 && added.length === 0) return current;
      const patched = patchList(current, removed, added);
      if (patched) return patched;
    }
    return mergeLists(this.#slices.map((entry) => listFor(entry.lists, port)).filter((l) => l.length > 0));
  }
}

function listFor(lists: readonly PortEndpoints[], port: PortIdentity): SortedEndpoints {
  for (const list of lists) if (isSamePort(list, port)) return list.endpoints;
  return noEndpoints;
}

function recordsFor(entries: readonly SliceEntry[], port: PortIdentity): readonly Endpoint[] {
  return entries.flatMap((entry) => listFor(entry.lists, port));
}

function distinctPorts(entries: readonly SliceEntry[]): readonly PortIdentity[] {
  const distinct: PortIdentity[] = [];
  for (const { lists } of entries) {
    for (const list of lists) if (!distinct.some((port) => isSamePort(list, port))) distinct.push(list);
  }
  return distinct;
}

/** Removes endpoints that are in both lists; unchanged ones are the same object in both. */
function difference(
  removed: readonly Endpoint[],
  added: readonly Endpoint[],
): [removed: Endpoint[], added: Endpoint[]] {
  const gone = new Set(removed);
  const fresh = added.filter((endpoint) => !gone.delete(endpoint));
  return [[...gone], fresh];
}

/** Keeps slices sorted by name, so that a merge does not depend on the order of arrival. */
function replaceSlices(slices: readonly SliceEntry[], change: SliceChange): readonly SliceEntry[] {
  const gone = new Set(change.removed);
  const rest = slices.filter((entry) => !gone.has(entry));
  return [...rest, ...change.added].sort(bySliceName);
}

function bySliceName(a: SliceEntry, b: SliceEntry): number {
  return a.object.name < b.object.name ? -1 : 1;
}
