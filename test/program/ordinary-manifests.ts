/**
 * Manifests as clusters have them: a List, pods at addresses of a pod network on a named node, Services of every kind,
 * both families, named target ports.
 */
export function ordinaryManifests(): string {
  const items = [
    service('front', {
      type: 'NodePort',
      clusterIPs: ['10.96.1.1', 'fd00:96::1'],
      ipFamilyPolicy: 'PreferDualStack',
      ports: [{ name: 'http', port: 80, targetPort: 'web', nodePort: 30_180 }],
    }),
    slice('front', 'IPv4', ['10.244.1.5', '10.244.2.7'], { name: 'http', port: 8080 }),
    slice('front', 'IPv6', ['fd00:10:244:1::5'], { name: 'http', port: 8080 }),
    service('dns', {
      clusterIPs: ['10.96.1.2'],
      ports: [{ name: 'dns', port: 53, protocol: 'UDP', targetPort: 'dns' }],
    }),
    slice('dns', 'IPv4', ['10.244.1.9'], { name: 'dns', port: 5353, protocol: 'UDP' }),
    service(
      'entry',
      {
        type: 'LoadBalancer',
        clusterIPs: ['10.96.1.3'],
        externalIPs: ['198.51.100.9'],
        ports: [{ port: 443, nodePort: 30_443 }],
      },
      { loadBalancer: { ingress: [{ ip: '203.0.113.10' }] } },
    ),
    slice('entry', 'IPv4', ['10.244.1.5'], { port: 8443 }),
    service('empty', { clusterIPs: ['10.96.1.4'], ports: [{ port: 80 }] }),
    service('signal', { clusterIPs: ['10.96.1.5'], ports: [{ port: 2905, protocol: 'SCTP' }] }),
    service('db', { clusterIPs: ['None'], ports: [{ port: 5432 }] }),
    slice('db', 'IPv4', ['10.244.1.20'], { port: 5432 }),
    service('elsewhere', { type: 'ExternalName', externalName: 'example.org' }),
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'front', namespace: 'town' } },
  ];
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, null, 1);
}

interface Spec {
  readonly clusterIPs?: readonly string[];
  readonly [field: string]: unknown;
}

function service(name: string, spec: Spec, status = {}) {
  const [clusterIP] = spec.clusterIPs ?? [];
  const metadata = { name, namespace: 'town' };
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { ...spec, ...(clusterIP && { clusterIP }) },
    status,
  };
}

function slice(serviceName: string, addressType: string, addresses: readonly string[], port: object) {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${serviceName}-${addressType.toLowerCase()}`,
      namespace: 'town',
      labels: { 'kubernetes.io/service-name': serviceName },
    },
    addressType,
    ports: [port],
    endpoints: addresses.map((address) => ({ addresses: [address], nodeName: 'worker-1' })),
  };
}
