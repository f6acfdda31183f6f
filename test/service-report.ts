import type { ServiceReport } from '../src/inspect/api.ts';

/** The service port shop/web:http/TCP with one endpoint, unless the fields say otherwise. */
export function serviceReport(fields: Partial<ServiceReport>): ServiceReport {
  return {
    service: 'shop/web:http/TCP',
    family: 'IPv4',
    namespace: 'shop',
    name: 'web',
    uid: '',
    creationTime: null,
    portName: 'http',
    protocol: 'TCP',
    clusterIP: '10.96.0.10',
    port: 80,
    nodePort: 0,
    externalIPs: [],
    loadBalancerIPs: [],
    loadBalancerSourceRanges: [],
    healthCheckNodePort: 0,
    affinitySeconds: 0,
    internalTrafficPolicy: 'Cluster',
    externalTrafficPolicy: 'Cluster',
    internal: { action: 'forward', endpoints: 'cluster', reason: 'internalTrafficPolicy is Cluster' },
    external: null,
    topology: { mode: 'none', reason: '' },
    endpoints: { known: 1, cluster: 1, local: 1 },
    ...fields,
  };
}
