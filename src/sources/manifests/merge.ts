import type { NodeObject, ResourceName, Resources } from '../../model/objects.ts';
import type { ManifestContent } from './content.ts';
import type { ManifestProblem } from './documents.ts';
import type { Entry } from './entries.ts';

/** Every object in use, by key. */
export type ObjectState = { readonly [R in ResourceName]: ReadonlyMap<string, Resources[R]> };

export interface Merged {
  readonly state: ObjectState;
  readonly problems: readonly ManifestProblem[];
}

type Files = readonly (readonly [file: string, content: ManifestContent])[];

/**
 * Merges the files in the given order: the first one that defines an object wins. Without a Node named `nodeName` it
 * adds one with only the name, so that the proxy does not wait for it. Objects with the same version as in `before` are
 * reused.
 */
export function mergeContents(files: Files, nodeName: string, before: ObjectState): Merged {
  const problems: ManifestProblem[] = [];
  const sliced = slicedServices(files);
  const nodes = pick('nodes', files, problems, () => true);
  if (!nodes.has(nodeName)) nodes.set(nodeName, bareNode(nodeName));
  const serviceCIDRs = pick('serviceCIDRs', files, problems, () => true);
  const services = pick('services', files, problems, () => true);
  const endpointSlices = pick('endpointSlices', files, problems, (entry) => {
    const { namespace, serviceName } = entry.object;
    return !entry.mirrored || !sliced.has(`${namespace}/${serviceName}`);
  });
  const state = {
    nodes: keepEqual(nodes, before.nodes),
    serviceCIDRs: keepEqual(serviceCIDRs, before.serviceCIDRs),
    services: keepEqual(services, before.services),
    endpointSlices: keepEqual(endpointSlices, before.endpointSlices),
  };
  return { state, problems };
}

function keepEqual<T extends { readonly resourceVersion: string }>(
  now: ReadonlyMap<string, T>,
  before: ReadonlyMap<string, T>,
): Map<string, T> {
  const keep = (key: string, object: T): T => {
    const known = before.get(key);
    return known?.resourceVersion === object.resourceVersion ? known : object;
  };
  return new Map([...now].map(([key, object]) => [key, keep(key, object)]));
}

function pick<R extends ResourceName>(
  resource: R,
  files: Files,
  problems: ManifestProblem[],
  counts: (entry: Entry<R>) => boolean,
): Map<string, Resources[R]> {
  const picked = new Map<string, { file: string; entry: Entry<R> }>();
  const reported = new Set<string>();
  for (const [file, content] of files) {
    for (const entry of content.entries[resource]) {
      if (!counts(entry)) continue;
      const first = picked.get(entry.key);
      if (!first) picked.set(entry.key, { file, entry });
      else if (!reported.has(`${file} ${entry.subject}`)) {
        reported.add(`${file} ${entry.subject}`);
        problems.push(duplicate(file, entry, first.file));
      }
    }
  }
  return new Map([...picked].map(([key, { entry }]) => [key, entry.object]));
}

function duplicate<R extends ResourceName>(file: string, entry: Entry<R>, first: string): ManifestProblem {
  const where = file === first ? 'earlier in this file' : `in ${first}`;
  const message = `${entry.subject} is already defined ${where}; this one is ignored`;
  return entry.position ? { file, position: entry.position, message } : { file, message };
}

/** Services that have an EndpointSlice; their Endpoints objects are not used. */
function slicedServices(files: Files): Set<string> {
  const slices = files.flatMap(([, content]) => content.entries.endpointSlices);
  const own = slices.filter((entry) => !entry.mirrored);
  return new Set(own.map(({ object }) => `${object.namespace}/${object.serviceName}`));
}

function bareNode(name: string): NodeObject {
  return {
    name,
    resourceVersion: '',
    labels: {},
    addresses: [],
    podCIDRs: [],
    taintKeys: [],
    deleting: false,
  };
}
