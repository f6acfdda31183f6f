/** A resource that the server knows. */
export interface ApiResource {
  /** Path of its collection over all namespaces. */
  readonly path: string;
  readonly kind: string;
  readonly apiVersion: string;
  readonly namespaced: boolean;
}

export const resources = {
  services: { path: '/api/v1/services', kind: 'Service', apiVersion: 'v1', namespaced: true },
  endpointSlices: {
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    namespaced: true,
  },
  nodes: { path: '/api/v1/nodes', kind: 'Node', apiVersion: 'v1', namespaced: false },
  serviceCIDRs: {
    path: '/apis/networking.k8s.io/v1/servicecidrs',
    kind: 'ServiceCIDR',
    apiVersion: 'networking.k8s.io/v1',
    namespaced: false,
  },
  events: {
    path: '/apis/events.k8s.io/v1/events',
    kind: 'Event',
    apiVersion: 'events.k8s.io/v1',
    namespaced: true,
  },
} as const satisfies Record<string, ApiResource>;

export type ServedResource = keyof typeof resources;

/** What a path names: a collection, maybe of one namespace, or one object in it. */
export interface Location {
  readonly resource: ServedResource;
  readonly namespace: string;
  readonly name: string;
}

export function locate(path: string): Location | undefined {
  for (const resource of Object.keys(resources) as ServedResource[]) {
    const whole = resources[resource].path;
    const cut = whole.lastIndexOf('/');
    const [group, plural] = [whole.slice(0, cut), whole.slice(cut + 1)];
    const pattern = new RegExp(`^${group}(?:/namespaces/([^/]+))?/${plural}(?:/([^/]+))?$`);
    const match = pattern.exec(path);
    if (match) {
      const [, namespace = '', name = ''] = match;
      return { resource, namespace: decodeURIComponent(namespace), name: decodeURIComponent(name) };
    }
  }
  return undefined;
}
