import fc from 'fast-check';
import type {
  EndpointObject,
  EndpointSliceObject,
  ServiceObject,
  SlicePortObject,
} from '../../src/model/objects.ts';
import type { PlanContext } from '../../src/plan/plan.ts';
import { service } from '../cluster/objects.ts';

const nodes = ['n1', 'n2', 'n3'];
const zones = ['za', 'zb'];
const serviceNames = ['x', 'y', 'z'];

const ports = [
  { name: 'http', protocol: 'TCP', port: 80 },
  { name: 'dns', protocol: 'UDP', port: 53 },
  { name: 'dns', protocol: 'TCP', port: 53 },
  { name: '', protocol: 'SCTP', port: 99 },
] as const;

const policy = fc.constantFrom('Cluster', 'Local');

/** Services with few different values besides their names, so that they collide often. */
export const serviceObject: fc.Arbitrary<ServiceObject> = fc
  .record({
    name: fc.constantFrom(...serviceNames),
    type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
    ipFamilies: fc.constantFrom(['IPv4'], ['IPv6'], ['IPv4', 'IPv6'], ['IPv6', 'IPv4']),
    externalTrafficPolicy: policy,
    internalTrafficPolicy: policy,
    healthCheckNodePort: fc.constantFrom(32100, 32101),
    externalIPs: fc.subarray(['198.51.100.1', 'fd00:51::1']),
    vip: fc.boolean(),
    ports: fc.subarray([...ports], { minLength: 1 }),
    nodePort: fc.constantFrom(0, 30000),
  })
  .map(({ ports, nodePort, vip, ...fields }) =>
    service(
      {
        ...fields,
        clusterIPs: fields.ipFamilies.map((family) => (family === 'IPv4' ? '10.96.0.1' : 'fd00:96::1')),
        loadBalancerIngress: vip ? [{ ip: '192.0.2.1' }, { ip: '2001:db8::1' }] : [],
      },
      ports.map((port) => ({ ...port, nodePort })),
    ),
  );

const hints = (names: readonly string[]) => fc.option(fc.subarray([...names]), { nil: undefined });

function endpointObject(family: 'IPv4' | 'IPv6'): fc.Arbitrary<EndpointObject> {
  return fc
    .record({
      // Few addresses, so that slices overlap. Some are of the wrong family; the state must ignore those.
      number: fc.integer({ min: 1, max: 12 }),
      isWrong: fc.integer({ min: 0, max: 19 }).map((n) => n === 0),
      ready: fc.boolean(),
      serving: fc.boolean(),
      terminating: fc.boolean(),
      nodeName: fc.constantFrom(...nodes),
      zoneHints: hints(zones),
      nodeHints: hints(nodes),
    })
    .map(({ number, isWrong, zoneHints, nodeHints, ...rest }) => ({
      address: (family === 'IPv4') !== isWrong ? `10.1.0.${number}` : `fd00:1::${number}`,
      ...rest,
      ...(zoneHints && { zoneHints }),
      ...(nodeHints && { nodeHints }),
    }));
}

const slicePorts: fc.Arbitrary<SlicePortObject[]> = fc.subarray([...ports], { minLength: 1 });

export const sliceObject: fc.Arbitrary<EndpointSliceObject> = fc
  .constantFrom('IPv4' as const, 'IPv6' as const)
  .chain((family) =>
    fc.record({
      namespace: fc.constant('a'),
      name: fc.constantFrom('s1', 's2', 's3', 's4', 's5').map((name) => `${name}-${family}`),
      resourceVersion: fc.constantFrom('1', '2', '3'),
      serviceName: fc.constantFrom(...serviceNames, ...serviceNames, ''),
      addressType: fc.constant(family),
      endpoints: fc.array(endpointObject(family), { maxLength: 6 }),
      ports: slicePorts,
    }),
  );

export const planContext: fc.Arbitrary<PlanContext> = fc.record({
  nodeName: fc.constant('n1'),
  zone: fc.constantFrom('', ...zones),
  allowExternalIPs: fc.constant(true),
});
