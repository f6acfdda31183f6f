import type { Endpoint } from '../../src/model/endpoint.ts';
import { type Family, familyOf, joinHostPort } from '../../src/model/ip.ts';
import type {
  EndpointObject,
  EndpointSliceObject,
  ServiceObject,
  ServicePortObject,
} from '../../src/model/objects.ts';
import { type ServicePort, servicePortKey } from '../../src/model/service-port.ts';
import type { RawObject } from './apiserver/store.ts';

type Conditions = Pick<Endpoint, 'ready' | 'serving' | 'terminating'>;

/** The conditions that an endpoint can be in. */
export const conditions = {
  ready: { ready: true, serving: true, terminating: false },
  /** Terminating, still serving. */
  draining: { ready: false, serving: true, terminating: true },
  /** Terminating, no longer serving. */
  gone: { ready: false, serving: false, terminating: true },
  unready: { ready: false, serving: false, terminating: false },
  /** Serving, neither ready nor terminating. */
  serving: { ready: false, serving: true, terminating: false },
  /** Ready although terminating (publishNotReadyAddresses). */
  published: { ready: true, serving: true, terminating: true },
} as const satisfies Readonly<Record<string, Conditions>>;

/** One letter for each of them. */
const letters: Readonly<Record<string, Conditions>> = {
  R: conditions.ready,
  T: conditions.draining,
  X: conditions.unready,
  Z: conditions.gone,
  S: conditions.serving,
  P: conditions.published,
};

/**
 * Endpoints in shorthand: `2R@n1/za,zb!n3` is address 10.1.0.2 (fd00:1::2), state R, on node n1, hinted for zones za
 * and zb and for node n3. Separated by blanks.
 */
export function endpointObjects(shorthand: string, family: Family = 'IPv4'): EndpointObject[] {
  return shorthand
    .split(' ')
    .filter(Boolean)
    .map((text) => {
      const match = /^(\d+)([A-Z])@(\w*)(?:\/([\w,]+))?(?:!([\w,]+))?$/.exec(text);
      const state = letters[match?.[2] ?? ''];
      if (!match || !state) throw new Error(`bad endpoint shorthand: ${text}`);
      const [, number, , nodeName, zones, nodes] = match;
      return {
        address: family === 'IPv4' ? `10.1.0.${number}` : `fd00:1::${number}`,
        ...state,
        ...(nodeName && { nodeName }),
        ...(zones && { zoneHints: zones.split(',') }),
        ...(nodes && { nodeHints: nodes.split(',') }),
      };
    });
}

/** Endpoints in the same shorthand, merged as on node n1. */
export function endpoints(shorthand: string, port = 80, family: Family = 'IPv4'): Endpoint[] {
  return endpointObjects(shorthand, family)
    .map(({ address: ip = '', nodeName, ...rest }) => {
      return { id: joinHostPort(ip, port), ip, port, isLocal: nodeName === 'n1', ...rest };
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The last number of each address, as in the shorthand. */
export function numbers(list: readonly Endpoint[]): string {
  return list.map(({ ip }) => ip.split(/[.:]/).at(-1)).join(' ');
}

/** A slice of the Service a/web with endpoints in shorthand. */
export function slice(
  name: string,
  shorthand: string,
  fields: Partial<EndpointSliceObject> = {},
): EndpointSliceObject {
  const addressType = fields.addressType ?? 'IPv4';
  return {
    namespace: 'a',
    name,
    resourceVersion: '1',
    serviceName: 'web',
    addressType,
    endpoints: endpointObjects(shorthand, addressType === 'IPv6' ? 'IPv6' : 'IPv4'),
    ports: [{ name: 'http', protocol: 'TCP', port: 80 }],
    ...fields,
  };
}

/** A Service a/web with TCP port 80 in both families, unless the fields say otherwise. */
export function service(
  fields: Partial<ServiceObject> = {},
  ports: readonly Partial<ServicePortObject>[] = [{}],
): ServiceObject {
  return {
    namespace: 'a',
    name: 'web',
    resourceVersion: '1',
    uid: '',
    createdAt: 0,
    type: 'ClusterIP',
    clusterIP: '10.96.0.1',
    clusterIPs: ['10.96.0.1', 'fd00:96::1'],
    ipFamilies: ['IPv4', 'IPv6'],
    externalIPs: [],
    loadBalancerIngress: [],
    loadBalancerSourceRanges: [],
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
    healthCheckNodePort: 0,
    sessionAffinity: 'None',
    ports: ports.map((port) => ({ name: 'http', protocol: 'TCP', port: 80, nodePort: 0, ...port })),
    ...fields,
  };
}

/** The parts of a service port that a test cares about; the family follows from the cluster IP. */
export type ServicePortParts = Partial<Omit<ServicePort, 'key' | 'family'>> & { readonly clusterIP: string };

/** A service port default/web with TCP port 80, unless the parts say otherwise. */
export function servicePort(parts: ServicePortParts): ServicePort {
  const { namespace = 'default', name = 'web', portName = '', protocol = 'TCP' } = parts;
  return {
    namespace,
    name,
    uid: '',
    createdAt: 0,
    portName,
    protocol,
    key: servicePortKey(namespace, name, portName, protocol),
    family: familyOf(parts.clusterIP) ?? 'IPv4',
    balance: 'default',
    port: 80,
    nodePort: 0,
    affinitySeconds: 0,
    externalIPs: [],
    loadBalancerVIPs: [],
    sourceRanges: [],
    externalPolicyLocal: false,
    internalPolicyLocal: false,
    healthCheckNodePort: 0,
    resetsDeparted: false,
    unsupportedBalance: undefined,
    unsupportedReset: false,
    ...parts,
  };
}

/**
 * The service port a/web:http in shorthand: `iL` and `eL` for policy Local inside and outside, `np`, `vip` and `xip` for
 * a node port, a load balancer VIP and an external IP.
 */
export function webPort(shorthand = '', fields: Partial<ServicePort> = {}): ServicePort {
  const words = new Set(shorthand.split(' '));
  const port = servicePort({
    namespace: 'a',
    portName: 'http',
    protocol: fields.protocol ?? 'TCP',
    clusterIP: '10.96.0.1',
    nodePort: words.has('np') ? 30080 : 0,
    externalIPs: words.has('xip') ? ['198.51.100.1'] : [],
    loadBalancerVIPs: words.has('vip') ? ['192.0.2.1'] : [],
    externalPolicyLocal: words.has('eL'),
    internalPolicyLocal: words.has('iL'),
  });
  return { ...port, ...fields };
}

export interface EndpointParts {
  readonly ip: string;
  readonly port?: number;
  /** On this node. */
  readonly local?: boolean;
  readonly state?: 'ready' | 'draining' | 'gone';
  readonly zoneHints?: readonly string[];
}

export function endpoint(parts: EndpointParts): Endpoint {
  const { ip, port = 8080, local = false, state = 'ready', zoneHints } = parts;
  return {
    id: joinHostPort(ip, port),
    ip,
    port,
    isLocal: local,
    ...conditions[state],
    ...(zoneHints ? { zoneHints } : {}),
  };
}

/** A Service shop/NAME as the API server returns it. */
export function apiService(
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

/** A slice of the Service shop/NAME with ready endpoints on the node node-a, as the API server returns it. */
export function apiSlice(serviceName: string, addresses: readonly string[], index = 0): RawObject {
  return {
    metadata: {
      namespace: 'shop',
      name: `${serviceName}-${index}`,
      labels: { 'kubernetes.io/service-name': serviceName },
    },
    addressType: 'IPv4',
    endpoints: addresses.map((address) => ({
      addresses: [address],
      conditions: conditions.ready,
      nodeName: 'node-a',
      zone: 'za',
      targetRef: { kind: 'Pod', namespace: 'shop', name: podName(serviceName, address) },
    })),
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  };
}

/** The pod that `apiSlice` puts at an address. */
export function podName(serviceName: string, address: string): string {
  return `${serviceName}-7d4b9c5f6d-${address.replaceAll('.', '-')}`;
}

/** A Node with one address, as the API server returns it. */
export function apiNode(name: string, zone = 'za'): RawObject {
  return {
    metadata: { name, labels: { 'topology.kubernetes.io/zone': zone } },
    spec: { podCIDRs: ['10.244.0.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
  };
}

export function apiServiceCIDR(name: string, ...cidrs: string[]): RawObject {
  return { metadata: { name }, spec: { cidrs } };
}
