import type { Endpoint } from '../../src/model/endpoint.ts';
import { type Family, joinHostPort } from '../../src/model/ip.ts';
import type {
  EndpointObject,
  EndpointSliceObject,
  Protocol,
  ServiceObject,
  ServicePortObject,
} from '../../src/model/objects.ts';
import type { ServicePort } from '../../src/model/service-port.ts';
import { servicePortKey } from '../../src/model/service-port.ts';

type Conditions = Pick<Endpoint, 'ready' | 'serving' | 'terminating'>;

/** One letter per state an endpoint can be in. */
const states: Readonly<Record<string, Conditions>> = {
  /** Ready. */
  R: { ready: true, serving: true, terminating: false },
  /** Terminating, still serving. */
  T: { ready: false, serving: true, terminating: true },
  /** Neither ready nor serving. */
  X: { ready: false, serving: false, terminating: false },
  /** Terminating, no longer serving. */
  Z: { ready: false, serving: false, terminating: true },
  /** Serving, neither ready nor terminating. */
  S: { ready: false, serving: true, terminating: false },
  /** Ready although terminating (publishNotReadyAddresses). */
  P: { ready: true, serving: true, terminating: true },
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
      const conditions = states[match?.[2] ?? ''];
      if (!match || !conditions) throw new Error(`bad endpoint shorthand: ${text}`);
      const [, number, , nodeName, zones, nodes] = match;
      return {
        address: family === 'IPv4' ? `10.1.0.${number}` : `fd00:1::${number}`,
        ...conditions,
        ...(nodeName && { nodeName }),
        ...(zones && { zoneHints: zones.split(',') }),
        ...(nodes && { nodeHints: nodes.split(',') }),
      };
    });
}

/** The same as merged endpoints, as node n1 sees them. */
export function endpoints(shorthand: string, port = 80, family: Family = 'IPv4'): Endpoint[] {
  return endpointObjects(shorthand, family)
    .map(({ address: ip = '', nodeName, ...rest }) => {
      return { id: joinHostPort(ip, port), ip, port, isLocal: nodeName === 'n1', ...rest };
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The last number of each address, as the shorthand has it. */
export function numbers(list: readonly Endpoint[]): string {
  return list.map(({ ip }) => ip.split(/[.:]/).at(-1)).join(' ');
}

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

/**
 * A service port in shorthand: `iL` and `eL` for policy Local inside and outside, `np`, `vip` and `xip` for a node
 * port, a load balancer VIP and an external IP.
 */
export function servicePort(shorthand = '', fields: Partial<ServicePort> = {}): ServicePort {
  const words = new Set(shorthand.split(' '));
  const protocol: Protocol = fields.protocol ?? 'TCP';
  return {
    key: servicePortKey('a', 'web', 'http', protocol),
    namespace: 'a',
    name: 'web',
    uid: '',
    createdAt: 0,
    portName: 'http',
    protocol,
    family: 'IPv4',
    clusterIP: '10.96.0.1',
    port: 80,
    nodePort: words.has('np') ? 30080 : 0,
    affinitySeconds: 0,
    externalIPs: words.has('xip') ? ['198.51.100.1'] : [],
    loadBalancerVIPs: words.has('vip') ? ['192.0.2.1'] : [],
    sourceRanges: [],
    externalPolicyLocal: words.has('eL'),
    internalPolicyLocal: words.has('iL'),
    healthCheckNodePort: 0,
    ...fields,
  };
}
