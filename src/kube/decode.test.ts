import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createIntern } from '../lib/intern.ts';
import { packNames } from '../model/pod-names.ts';
import { decodeEndpoints, decoders } from './decode.ts';
import { ObjectError } from './fields.ts';

const intern = createIntern();
const metadata = { namespace: 'shop', name: 'front', resourceVersion: '42' };

function faultOf(run: () => unknown): ObjectError {
  try {
    run();
  } catch (error) {
    if (error instanceof ObjectError) return error;
    throw error;
  }
  assert.fail('accepted');
}

describe('services', () => {
  test('keeps the fields in use and drops the rest', () => {
    const decoded = decoders.services(
      {
        kind: 'Service',
        apiVersion: 'v1',
        metadata: {
          ...metadata,
          uid: 'u-1',
          creationTimestamp: '2026-01-02T03:04:05Z',
          managedFields: [{}],
          labels: { app: 'x' },
          annotations: { 'kube-proxy-ts.dev/reset-departed': 'tcp', other: 'x' },
        },
        spec: {
          type: 'LoadBalancer',
          clusterIP: '10.96.0.1',
          clusterIPs: ['10.96.0.1', 'fd00::1'],
          ipFamilies: ['IPv4', 'IPv6'],
          externalIPs: ['192.0.2.1'],
          loadBalancerSourceRanges: ['203.0.113.0/24'],
          externalTrafficPolicy: 'Local',
          internalTrafficPolicy: 'Cluster',
          healthCheckNodePort: 32100,
          sessionAffinity: 'ClientIP',
          sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } },
          ports: [
            { name: 'http', port: 80, nodePort: 31000, targetPort: 'web' },
            { port: 53, protocol: 'UDP' },
          ],
          selector: { app: 'x' },
        },
        status: {
          loadBalancer: { ingress: [{ ip: '192.0.2.7', ipMode: 'VIP' }, { hostname: 'lb.example' }] },
        },
      },
      intern,
    );
    assert.deepEqual(decoded, {
      ...metadata,
      uid: 'u-1',
      createdAt: Date.UTC(2026, 0, 2, 3, 4, 5) / 1000,
      type: 'LoadBalancer',
      clusterIP: '10.96.0.1',
      clusterIPs: ['10.96.0.1', 'fd00::1'],
      ipFamilies: ['IPv4', 'IPv6'],
      externalIPs: ['192.0.2.1'],
      loadBalancerIngress: [{ ip: '192.0.2.7', ipMode: 'VIP' }, { ip: '' }],
      loadBalancerSourceRanges: ['203.0.113.0/24'],
      externalTrafficPolicy: 'Local',
      internalTrafficPolicy: 'Cluster',
      healthCheckNodePort: 32100,
      sessionAffinity: 'ClientIP',
      affinityTimeoutSeconds: 10800,
      annotations: { 'reset-departed': 'tcp' },
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, nodePort: 31000 },
        { name: '', protocol: 'UDP', port: 53, nodePort: 0 },
      ],
    });
  });

  test('null and absent fields become their zero values', () => {
    const bare = decoders.services({ metadata }, intern);
    assert.equal(bare.clusterIP, '');
    assert.deepEqual([bare.uid, bare.createdAt], ['', 0]);
    assert.deepEqual(bare.ports, []);
    assert.ok(!('affinityTimeoutSeconds' in bare));
    const nulls = decoders.services(
      { metadata, spec: { ports: null, clusterIPs: null }, status: null },
      intern,
    );
    assert.deepEqual(nulls, bare);
  });

  const wrong: [field: string, object: unknown, value: unknown][] = [
    ['', 'text', 'text'],
    ['', null, null],
    ['', [], []],
    ['kind', { kind: 'Pod', metadata }, 'Pod'],
    ['metadata', { metadata: 7 }, 7],
    ['metadata.name', { metadata: {} }, undefined],
    ['metadata.name', {}, undefined],
    ['metadata.resourceVersion', { metadata: { ...metadata, resourceVersion: 5 } }, 5],
    ['spec', { metadata, spec: [1] }, [1]],
    ['spec.clusterIP', { metadata, spec: { clusterIP: 1 } }, 1],
    ['spec.ports', { metadata, spec: { ports: {} } }, {}],
    ['spec.ports[1]', { metadata, spec: { ports: [{ port: 1 }, null] } }, null],
    ['spec.ports[0].port', { metadata, spec: { ports: [{ port: '80' }] } }, '80'],
    ['spec.ports[0].port', { metadata, spec: { ports: [{ port: 70000 }] } }, 70000],
    ['spec.ports[0].nodePort', { metadata, spec: { ports: [{ nodePort: -1 }] } }, -1],
    ['spec.clusterIPs[0]', { metadata, spec: { clusterIPs: [1.5] } }, 1.5],
    [
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds',
      { metadata, spec: { sessionAffinityConfig: { clientIP: { timeoutSeconds: 1e12 } } } },
      1e12,
    ],
    [
      'status.loadBalancer.ingress[0].ip',
      { metadata, status: { loadBalancer: { ingress: [{ ip: false }] } } },
      false,
    ],
  ];
  for (const [field, object, value] of wrong) {
    test(`refuses a wrong ${field || 'object'} (${JSON.stringify(value)})`, () => {
      const fault = faultOf(() => decoders.services(object, intern));
      assert.equal(fault.field, field);
      assert.deepEqual(fault.value, value);
    });
  }

  test('the message names kind, object, field and value', () => {
    const fault = faultOf(() => decoders.services({ metadata, spec: { ports: [{ port: 'http' }] } }, intern));
    assert.equal(
      fault.message,
      'Service shop/front: spec.ports[0].port: want an integer between 0 and 65535, got "http"',
    );
  });
});

describe('endpoint slices', () => {
  test('applies the null rules of conditions, names and ports', () => {
    const decoded = decoders.endpointSlices(
      {
        metadata: {
          ...metadata,
          labels: { 'kubernetes.io/service-name': 'front' },
          annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-01T00:00:00Z' },
        },
        addressType: 'IPv4',
        endpoints: [
          {
            addresses: ['10.1.0.1', '10.1.0.2'],
            nodeName: 'n1',
            zone: 'za',
            targetRef: { kind: 'Pod', namespace: 'shop', name: 'front-x2x9k', uid: 'u' },
          },
          { addresses: ['10.1.0.3'], conditions: { ready: false, serving: null, terminating: true } },
          { addresses: [], hints: { forZones: [{ name: 'za' }], forNodes: [] } },
        ],
        ports: [
          { name: '', port: 8080 },
          { name: null, port: null, protocol: 'UDP' },
        ],
      },
      intern,
    );
    assert.deepEqual(decoded, {
      ...metadata,
      serviceName: 'front',
      triggerTime: '2026-01-01T00:00:00Z',
      addressType: 'IPv4',
      endpoints: [
        { address: '10.1.0.1', ready: true, serving: true, terminating: false, nodeName: 'n1', zone: 'za' },
        { address: '10.1.0.3', ready: false, serving: true, terminating: true },
        { ready: true, serving: true, terminating: false, zoneHints: ['za'] },
      ],
      pods: packNames(['front-x2x9k', '', '']),
      ports: [{ name: '', protocol: 'TCP', port: 8080 }, { protocol: 'UDP' }],
    });
  });

  test('a pod of the wrong type is named by its field', () => {
    const endpoints = [{}, { targetRef: { kind: 'Pod', name: 5 } }];
    const fault = faultOf(() => decoders.endpointSlices({ metadata, endpoints }, intern));
    assert.equal(fault.field, 'endpoints[1].targetRef.name');
  });

  test('a label of the wrong type is named by its key', () => {
    const labels = { 'kubernetes.io/service-name': 5 };
    const fault = faultOf(() => decoders.endpointSlices({ metadata: { ...metadata, labels } }, intern));
    assert.equal(fault.field, 'metadata.labels["kubernetes.io/service-name"]');
  });
});

test('a node keeps labels, IP addresses, pod CIDRs, taint keys and whether it is being deleted', () => {
  const decoded = decoders.nodes(
    {
      metadata: {
        name: 'n1',
        resourceVersion: '7',
        labels: JSON.parse('{"zone":"za","__proto__":"kept"}'),
        deletionTimestamp: '2026-01-01T00:00:00Z',
      },
      spec: {
        podCIDRs: ['10.244.0.0/24'],
        taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }],
      },
      status: {
        addresses: [
          { type: 'Hostname', address: 'n1' },
          { type: 'ExternalIP', address: '192.0.2.1' },
          { type: 'InternalIP', address: '10.0.0.1' },
        ],
      },
    },
    intern,
  );
  assert.deepEqual(Object.entries(decoded.labels), [
    ['zone', 'za'],
    ['__proto__', 'kept'],
  ]);
  assert.deepEqual(
    { ...decoded, labels: {} },
    {
      name: 'n1',
      resourceVersion: '7',
      labels: {},
      addresses: [
        { type: 'ExternalIP', address: '192.0.2.1' },
        { type: 'InternalIP', address: '10.0.0.1' },
      ],
      podCIDRs: ['10.244.0.0/24'],
      taintKeys: ['ToBeDeletedByClusterAutoscaler'],
      deleting: true,
    },
  );
});

test('a service CIDR keeps its ranges', () => {
  const decoded = decoders.serviceCIDRs(
    { metadata: { name: 'kubernetes' }, spec: { cidrs: ['10.96.0.0/12'] } },
    intern,
  );
  assert.deepEqual(decoded, { name: 'kubernetes', resourceVersion: '', cidrs: ['10.96.0.0/12'] });
});

describe('legacy endpoints', () => {
  test('mirror to one slice per subset and family', () => {
    const slices = decodeEndpoints(
      {
        kind: 'Endpoints',
        metadata,
        subsets: [
          {
            addresses: [{ ip: '10.1.0.1', nodeName: 'n1' }, { ip: 'fd00::1' }],
            notReadyAddresses: [{ ip: '10.1.0.2', targetRef: { kind: 'Pod', name: 'front-1' } }],
            ports: [{ port: 80 }, { name: 'dns', port: 53, protocol: 'UDP' }],
          },
        ],
      },
      intern,
    );
    const ports = [
      { name: '', protocol: 'TCP', port: 80 },
      { name: 'dns', protocol: 'UDP', port: 53 },
    ];
    const shared = { namespace: 'shop', resourceVersion: '42', serviceName: 'front', ports };
    assert.deepEqual(slices, [
      {
        ...shared,
        name: 'front-0-ipv4',
        addressType: 'IPv4',
        endpoints: [
          { address: '10.1.0.1', ready: true, serving: true, terminating: false, nodeName: 'n1' },
          { address: '10.1.0.2', ready: false, serving: false, terminating: false },
        ],
        pods: packNames(['', 'front-1']),
      },
      {
        ...shared,
        name: 'front-0-ipv6',
        addressType: 'IPv6',
        endpoints: [{ address: 'fd00::1', ready: true, serving: true, terminating: false }],
      },
    ]);
  });

  test('refuse an address that does not parse', () => {
    const fault = faultOf(() =>
      decodeEndpoints({ metadata, subsets: [{ addresses: [{ ip: 'web' }] }] }, intern),
    );
    assert.equal(fault.field, 'subsets[0].addresses[0].ip');
  });
});

describe('any input', () => {
  const keys = [
    'metadata',
    'spec',
    'status',
    'name',
    'labels',
    'ports',
    'port',
    'endpoints',
    'addresses',
    'subsets',
  ];
  const { node } = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 5 },
      fc.jsonValue({ maxDepth: 1 }),
      fc.array(tie('node'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...keys, 'conditions', 'hints', 'cidrs', 'kind'), tie('node'), {
        maxKeys: 5,
      }),
    ),
  }));
  for (const [name, decode] of [...Object.entries(decoders), ['endpoints', decodeEndpoints] as const]) {
    test(`${name}: decodes or throws ObjectError, nothing else`, () => {
      fc.assert(
        fc.property(node, fc.boolean(), (raw, named) => {
          const object = named && typeof raw === 'object' && !Array.isArray(raw) ? { ...raw, metadata } : raw;
          try {
            decode(object, intern);
          } catch (error) {
            assert.ok(error instanceof ObjectError, String(error));
          }
        }),
        { numRuns: 500 },
      );
    });
  }
});
