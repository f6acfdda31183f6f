import type { Family } from '../../src/model/ip.ts';
import type { RawObject } from '../cluster/apiserver/store.ts';
import { conditions } from '../cluster/objects.ts';
import { type AddressBook, addressBooks } from './address-book.ts';
import type { EndpointPlace, EndpointSpec, ServiceSpec } from './story.ts';

export const thisNode = 'n1';
const otherNode = 'n2';
export const namespace = 'contract';
export const zones = { here: 'zone-a', there: 'zone-b' };

/** The port of pods; `hostPort` is the port of processes of the node. */
export const podPort = 8080;
export const hostPort = 9090;

/** More services would need node ports in the range of outgoing connections. */
export const maxServices = 2_700;
/** Services above `maxServices` are markers, which have no node ports. From here on, addresses are used otherwise. */
export const maxMarker = 51_000;
const firstNodePort = 30_000;
const firstHealthCheckPort = 12_000;

/** A service by its number, from which its name, addresses and node port follow. */
export interface NumberedService {
  readonly n: number;
  readonly spec: ServiceSpec;
}

export const serviceName = (n: number): string => `service-${n}`;
export const nodePortOf = (n: number): number => firstNodePort + n;
export const healthCheckPortOf = (n: number): number => firstHealthCheckPort + n;
export const servicePortOf = (spec: ServiceSpec): number => spec.port ?? 80;
export const protocolsOf = (spec: ServiceSpec): NonNullable<ServiceSpec['protocols']> =>
  spec.protocols ?? ['TCP'];

const booksOf = (families: readonly Family[]): AddressBook[] =>
  families.map((family) => addressBooks[family]);

export function serviceObject({ n, spec }: NumberedService, families: readonly Family[]): RawObject {
  const addresses = booksOf(families).map((book) => book.service(n));
  const clusterIPs = spec.headless ? ['None'] : addresses.map(({ clusterIP }) => clusterIP);
  const { nodePort, external, claims, loadBalancer, affinitySeconds, distribution } = spec;
  const externalIPs = [
    ...(external ? addresses.map((each) => each.external) : []),
    ...(claims ? booksOf(families).map((book) => book.service(claims.of)[claims.address]) : []),
  ];
  return {
    metadata: {
      namespace,
      name: serviceName(n),
      labels: spec.labels ?? {},
      annotations: spec.annotations ?? {},
      ...(spec.made && {
        creationTimestamp: new Date(Date.UTC(2026, 0) + spec.made.at * 1000).toISOString(),
        uid: spec.made.uid ?? '',
      }),
    },
    spec: {
      type: loadBalancer ? 'LoadBalancer' : nodePort ? 'NodePort' : 'ClusterIP',
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: families,
      ...(externalIPs.length > 0 && { externalIPs }),
      internalTrafficPolicy: spec.internalPolicy ?? 'Cluster',
      ...((nodePort || externalIPs.length > 0 || loadBalancer) && {
        externalTrafficPolicy: spec.externalPolicy ?? 'Cluster',
      }),
      ...affinity(affinitySeconds),
      ...(spec.ranges && { loadBalancerSourceRanges: rangesOf(spec, spec.rangeFamilies ?? families) }),
      ...(loadBalancer && spec.externalPolicy === 'Local' && { healthCheckNodePort: healthCheckPortOf(n) }),
      ...(distribution && { trafficDistribution: distribution }),
      ports: protocolsOf(spec).map((protocol) => ({
        name: protocol.toLowerCase(),
        protocol,
        port: servicePortOf(spec),
        targetPort: podPort,
        ...(nodePort && { nodePort: nodePortOf(n) }),
      })),
    },
    status: {
      loadBalancer: loadBalancer
        ? { ingress: addresses.map((each) => ingress(each.loadBalancer, loadBalancer)) }
        : {},
    },
  };
}

function affinity(seconds: number | undefined): Record<string, unknown> {
  if (seconds === undefined) return { sessionAffinity: 'None' };
  return {
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: seconds } },
  };
}

function rangesOf({ ranges = [] }: ServiceSpec, families: readonly Family[]): string[] {
  return booksOf(families).flatMap((book) => ranges.map((range) => book.ranges[range]));
}

function ingress(ip: string, kind: ServiceSpec['loadBalancer']): Record<string, string> {
  if (kind === 'hostname only') return { hostname: 'balancer.example' };
  return { ip, ipMode: kind === 'Proxy' ? 'Proxy' : 'VIP' };
}

/** One slice per family. */
export function sliceObjects({ n, spec }: NumberedService, families: readonly Family[]): RawObject[] {
  return booksOf(families).flatMap((book) =>
    (['pod', 'host'] as const).map((network) => sliceObject(n, spec, book, network)),
  );
}

/** A slice has one port number: pods and processes of the node are in different ones. */
function sliceObject(n: number, spec: ServiceSpec, book: AddressBook, network: 'pod' | 'host'): RawObject {
  const endpoints = spec.endpoints
    .map((endpoint): EndpointSpec => (typeof endpoint === 'string' ? { at: endpoint } : endpoint))
    .filter(({ at }) => (at === 'node') === (network === 'host'));
  const name = serviceName(n);
  return {
    metadata: {
      namespace,
      name: `${name}-${network}-${book.family.toLowerCase()}`,
      labels: {
        'kubernetes.io/service-name': name,
        ...(spec.headless && { 'service.kubernetes.io/headless': '' }),
      },
    },
    addressType: book.family,
    endpoints: endpoints.map((endpoint) => endpointObject(endpoint, book)),
    ports: protocolsOf(spec).map((protocol) => ({
      name: protocol.toLowerCase(),
      protocol,
      port: network === 'pod' ? podPort : hostPort,
    })),
  };
}

function endpointObject({ at, state, zoneHints, nodeHints }: EndpointSpec, book: AddressBook): object {
  const isHere = at === 'A' || at === 'C' || at === 'node';
  return {
    addresses: [addressOf(at, book)],
    conditions: state === 'silent' ? {} : conditions[state ?? 'ready'],
    nodeName: isHere ? thisNode : otherNode,
    zone: isHere ? zones.here : zones.there,
    targetRef: { kind: 'Pod', namespace, name: podName(at) },
    ...((zoneHints || nodeHints) && {
      hints: {
        ...(zoneHints && { forZones: zoneHints.map((name) => ({ name })) }),
        ...(nodeHints && { forNodes: nodeHints.map((name) => ({ name })) }),
      },
    }),
  };
}

export function podName(at: EndpointPlace): string {
  return `pod-${at.toLowerCase()}`;
}

function addressOf(at: EndpointPlace, book: AddressBook): string {
  if (at === 'node' || at === 'nobody') return book[at];
  return book.hosts[at];
}

/** What may change of the node: its zone, and which of its addresses the Node object has. */
export interface NodeState {
  readonly zone?: string;
  readonly address?: 'node' | 'nodeSecond';
}

/** The node as the cluster knows it. */
export function nodeObject(
  families: readonly Family[],
  podFamilies: readonly Family[],
  { zone = zones.here, address = 'node' }: NodeState = {},
): RawObject {
  return {
    metadata: { name: thisNode, labels: { 'topology.kubernetes.io/zone': zone } },
    spec: { podCIDRs: booksOf(podFamilies).map(({ podCIDR }) => podCIDR) },
    status: {
      addresses: booksOf(families).map((book) => ({ type: 'InternalIP', address: book[address] })),
    },
  };
}

export function serviceCIDRObject(families: readonly Family[]): RawObject {
  return {
    metadata: { name: 'kubernetes' },
    spec: { cidrs: booksOf(families).map((book) => book.serviceCIDR) },
  };
}
