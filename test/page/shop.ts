import { annotationPrefix } from '../../src/model/own-annotations.ts';
import type { ApiServer } from '../cluster/apiserver/server.ts';
import type { RawObject } from '../cluster/apiserver/store.ts';
import { apiService, apiSlice, conditions, podName } from '../cluster/objects.ts';

/** A port name that no API server admits. A page that took it as markup would run the script. */
export const markup = '<img src=x onerror="document.title=666">';

/** Changes the spec of a Service. */
function withSpec(service: RawObject, spec: Record<string, unknown>): RawObject {
  return { ...service, spec: { ...(service.spec as object), ...spec } };
}

/** Services in every state that the page distinguishes. */
export function putShop(api: ApiServer): void {
  const put = (name: string, clusterIP: string, spec: Record<string, unknown> = {}) =>
    api.put('services', withSpec(apiService(name, 80, { clusterIP }), spec));
  const ports = [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080, nodePort: 30_080 }];
  put('web', '10.96.0.10', { type: 'NodePort', ports, sessionAffinity: 'ClientIP' });
  putWebEndpoints(api, ['10.244.0.5', '10.244.0.6', '10.244.1.7']);
  put('cart', '10.96.0.11', { externalIPs: ['198.51.100.1'] });
  api.put('endpointSlices', apiSlice('cart', ['10.244.0.8']));
  put('cart-copy', '10.96.0.12', { externalIPs: ['198.51.100.1'] });
  api.put('endpointSlices', apiSlice('cart-copy', ['10.244.0.9']));
  // The only one whose endpoint is there: the node itself.
  put('echo', '10.96.0.20');
  api.put('endpointSlices', apiSlice('echo', ['192.0.2.1']));
  const hashed = apiService('hashed', 80, { clusterIP: '10.96.0.17' });
  const annotations = { [`${annotationPrefix}balance`]: 'hash' };
  api.put('services', { ...hashed, metadata: { ...hashed.metadata, annotations } });
  api.put('endpointSlices', apiSlice('hashed', ['10.244.0.21', '10.244.0.22', '10.244.0.23']));
  put('lonely', '10.96.0.13');
  put('far', '10.96.0.14', {
    type: 'NodePort',
    externalTrafficPolicy: 'Local',
    ports: [{ name: 'http', port: 80, protocol: 'TCP', nodePort: 30_081 }],
  });
  const slice = apiSlice('far', []);
  api.put('endpointSlices', {
    ...slice,
    endpoints: [{ addresses: ['10.244.1.9'], conditions: conditions.ready, nodeName: 'node-b', zone: 'zb' }],
  });
  put('odd', '10.96.0.15', { ports: [{ name: markup, port: 80, protocol: 'TCP' }] });
  put('broken', '10.96.0.16', { ports: [{ name: 'a\0b', port: 80, protocol: 'TCP' }] });
}

/** The last endpoint is on another node; one more is not ready. */
export function putWebEndpoints(api: ApiServer, addresses: readonly string[]): void {
  const slice = apiSlice('web', []);
  const ready = addresses.map((address, i) => ({
    addresses: [address],
    conditions: conditions.ready,
    nodeName: i < 2 ? 'node-a' : 'node-b',
    zone: i < 2 ? 'za' : 'zb',
    targetRef: { kind: 'Pod', namespace: 'shop', name: podName('web', address) },
    hints: { forZones: [{ name: i < 2 ? 'za' : 'zb' }] },
  }));
  const unready = {
    addresses: ['10.244.1.8'],
    conditions: conditions.unready,
    nodeName: 'node-b',
    zone: 'zb',
  };
  api.put('endpointSlices', { ...slice, endpoints: [...ready, unready] });
}
