import type { RawObject } from '../cluster/apiserver/store.ts';

/** A Service as the API server would return it. */
export function service(
  name: string,
  port = 80,
  more: { labels?: Record<string, string>; clusterIP?: string } = {},
): RawObject {
  const clusterIP = more.clusterIP ?? '10.96.0.1';
  return {
    metadata: { namespace: 'shop', name, labels: { app: name, ...more.labels } },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ['IPv4'],
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ports: [{ name: 'http', port, protocol: 'TCP', targetPort: 8080 }],
    },
    status: { loadBalancer: {} },
  };
}

export function slice(serviceName: string, addresses: readonly string[], index = 0): RawObject {
  return {
    metadata: {
      namespace: 'shop',
      name: `${serviceName}-${index}`,
      labels: { 'kubernetes.io/service-name': serviceName },
    },
    addressType: 'IPv4',
    endpoints: addresses.map((address) => ({
      addresses: [address],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: 'node-a',
      zone: 'za',
    })),
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  };
}

export function node(name: string, zone = 'za'): RawObject {
  return {
    metadata: { name, labels: { 'topology.kubernetes.io/zone': zone } },
    spec: { podCIDRs: ['10.244.0.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
  };
}

export function serviceCIDR(name: string, ...cidrs: string[]): RawObject {
  return { metadata: { name }, spec: { cidrs } };
}
