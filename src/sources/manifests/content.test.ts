import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { createIntern } from '../../lib/intern.ts';
import type { ServiceObject } from '../../model/objects.ts';
import { type ManifestContent, readContent } from './content.ts';
import { ManifestError } from './documents.ts';

const options = { intern: createIntern(), nodeName: 'n1', clock: new FakeClock() };
const read = (text: string, isJson = false): Promise<ManifestContent> => readContent(text, isJson, options);
const readObject = (object: unknown) => read(JSON.stringify(object), true);

const service = (spec: object, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', ...metadata },
  spec,
});

async function serviceOf(spec: object): Promise<ServiceObject> {
  const entry = (await readObject(service(spec))).entries.services[0];
  assert.ok(entry);
  return entry.object;
}

test('a bare Service gets the defaults of the API', async () => {
  const { resourceVersion, ...object } = await serviceOf({ clusterIP: '10.96.0.1', ports: [{ port: 80 }] });
  assert.match(resourceVersion, /^[0-9a-f]{16}$/);
  assert.deepEqual(object, {
    namespace: 'default',
    name: 'web',
    uid: '',
    createdAt: 0,
    type: 'ClusterIP',
    clusterIP: '10.96.0.1',
    clusterIPs: ['10.96.0.1'],
    ipFamilies: ['IPv4'],
    externalIPs: [],
    loadBalancerIngress: [],
    loadBalancerSourceRanges: [],
    externalTrafficPolicy: '',
    internalTrafficPolicy: 'Cluster',
    healthCheckNodePort: 0,
    sessionAffinity: 'None',
    ports: [{ name: '', protocol: 'TCP', port: 80, nodePort: 0 }],
  });
});

for (const [name, spec, expected] of [
  [
    'both families of clusterIPs',
    { clusterIPs: ['fd00::1', '10.96.0.1'] },
    { clusterIP: 'fd00::1', ipFamilies: ['IPv6', 'IPv4'] },
  ],
  [
    'ipFamilies as given',
    { clusterIP: '10.96.0.1', ipFamilies: ['IPv4', 'IPv6'] },
    { ipFamilies: ['IPv4', 'IPv6'] },
  ],
  [
    'a policy for node ports',
    { clusterIP: '10.96.0.1', type: 'NodePort' },
    { externalTrafficPolicy: 'Cluster' },
  ],
  [
    'a policy for external IPs',
    { clusterIP: '10.96.0.1', externalIPs: ['1.2.3.4'] },
    { externalTrafficPolicy: 'Cluster' },
  ],
  [
    'policies as given',
    {
      clusterIP: '10.96.0.1',
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      internalTrafficPolicy: 'Local',
    },
    { externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' },
  ],
  [
    'affinity time',
    { clusterIP: '10.96.0.1', sessionAffinity: 'ClientIP' },
    { sessionAffinity: 'ClientIP', affinityTimeoutSeconds: 10800 },
  ],
  [
    'affinity time as given',
    {
      clusterIP: '10.96.0.1',
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } },
    },
    { affinityTimeoutSeconds: 5 },
  ],
  [
    'ExternalName',
    { type: 'ExternalName' },
    { clusterIP: '', clusterIPs: [], ipFamilies: [], internalTrafficPolicy: '', externalTrafficPolicy: '' },
  ],
] as const) {
  test(`Service defaults: ${name}`, async () => {
    assert.partialDeepStrictEqual(await serviceOf(spec), expected);
  });
}

test('slices get port names, protocols and a namespace', async () => {
  const { entries } = await readObject({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 's', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.1.0.1'] }],
    ports: [{ port: 80 }, { name: null, port: 81 }, { name: 'x', port: 82, protocol: 'UDP' }],
  });
  const slice = entries.endpointSlices[0]?.object;
  assert.equal(slice?.namespace, 'default');
  assert.deepEqual(slice?.ports, [
    { name: '', protocol: 'TCP', port: 80 },
    { name: '', protocol: 'TCP', port: 81 },
    { name: 'x', protocol: 'UDP', port: 82 },
  ]);
});

test('Endpoints are converted to EndpointSlices', async () => {
  const { entries } = await readObject({
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'web', namespace: 'shop' },
    subsets: [{ addresses: [{ ip: '10.1.0.1' }, { ip: 'fd00::1' }], ports: [{ port: 80 }] }],
  });
  assert.deepEqual(
    entries.endpointSlices.map(({ object, mirrored, subject }) => [
      object.addressType,
      object.serviceName,
      mirrored,
      subject,
    ]),
    [
      ['IPv4', 'web', true, 'Endpoints shop/web'],
      ['IPv6', 'web', true, 'Endpoints shop/web'],
    ],
  );
  assert.equal(entries.endpointSlices[0]?.object.namespace, 'shop');
});

test('a Node gives podCIDRs from podCIDR; other nodes are left out', async () => {
  const node = (name: string, spec: object) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name }, spec });
  const podCIDRs = async (spec: object) =>
    (await readObject(node('n1', spec))).entries.nodes[0]?.object.podCIDRs;
  assert.deepEqual(await podCIDRs({ podCIDR: '10.1.0.0/24' }), ['10.1.0.0/24']);
  assert.deepEqual(await podCIDRs({ podCIDR: '10.1.0.0/24', podCIDRs: ['10.2.0.0/24'] }), ['10.2.0.0/24']);
  assert.deepEqual(await podCIDRs({}), []);
  assert.deepEqual((await readObject(node('n2', {}))).entries.nodes, []);
});

test('the selectors that the proxy sends to an API server apply', async () => {
  const label = (name: string) => ({ labels: { [name]: '' } });
  const left = async (object: unknown) => {
    const { entries, unused } = await readObject(object);
    assert.deepEqual(unused, []);
    return [...entries.services, ...entries.endpointSlices].length;
  };
  const ok = { clusterIP: '10.96.0.1' };
  assert.equal(await left(service(ok, label('app'))), 1);
  assert.equal(await left(service(ok, label('service.kubernetes.io/service-proxy-name'))), 0);
  assert.equal(await left(service({ clusterIP: 'None' })), 0);
  assert.equal(await left(service({ clusterIPs: ['None'] })), 0);
  const slice = (metadata: object) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 's', ...metadata },
    addressType: 'IPv4',
  });
  assert.equal(await left(slice({})), 1);
  assert.equal(await left(slice(label('service.kubernetes.io/headless'))), 0);
  assert.equal(await left(slice(label('service.kubernetes.io/service-proxy-name'))), 1);
});

test('Lists, typed Lists and several documents are read', async () => {
  const yaml = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.96.0.1}}
- {apiVersion: v1, kind: Pod, metadata: {name: p}}
---
apiVersion: v1
kind: ServiceList
items:
- {metadata: {name: b}, spec: {clusterIP: 10.96.0.2}}
---
apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: {name: kubernetes}
spec: {cidrs: [10.96.0.0/12]}
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: other}
`;
  const { entries, unused } = await read(yaml);
  assert.deepEqual(
    entries.services.map(({ key, position }) => [key, position]),
    [
      ['default/a', { line: 5, column: 3 }],
      ['default/b', { line: 11, column: 3 }],
    ],
  );
  assert.deepEqual(entries.serviceCIDRs[0]?.object.cidrs, ['10.96.0.0/12']);
  assert.deepEqual(unused, ['v1 Pod', 'serving.knative.dev/v1 Service']);
});

test('a Service without a cluster IP is not used', async () => {
  const { entries, unused } = await readObject(service({ ports: [{ port: 80 }] }));
  assert.deepEqual(entries.services, []);
  assert.deepEqual(unused, ['Service default/web (no spec.clusterIP, and no API server to allocate one)']);
});

test('the resource version is a hash of the content', async () => {
  const version = async (object: unknown) =>
    (await readObject(object)).entries.services[0]?.object.resourceVersion;
  const first = await version(service({ clusterIP: '10.96.0.1' }, { resourceVersion: '7' }));
  assert.equal(
    await version(service({ clusterIP: '10.96.0.1' }, { resourceVersion: '8', labels: { a: 'b' } })),
    first,
  );
  assert.notEqual(await version(service({ clusterIP: '10.96.0.2' }, { resourceVersion: '7' })), first);
});

const head = 'apiVersion: v1\nkind: Service\nmetadata: {name: web}\n';

for (const [name, text, line, column, message] of [
  [
    'a field of the wrong type',
    `${head}spec:\n  clusterIP: 10.96.0.1\n  ports:\n  - port: eighty\n`,
    7,
    11,
    'document 1: Service web: spec.ports[0].port: want an integer between 0 and 65535, got "eighty"',
  ],
  [
    'a bad clusterIP',
    `${head}spec:\n  clusterIP: 10.96.0.300\n`,
    5,
    14,
    'document 1: Service default/web: spec.clusterIP: want an IP address, got "10.96.0.300"',
  ],
  [
    'two cluster IPs that differ',
    `${head}spec:\n  clusterIP: 10.96.0.1\n  clusterIPs: [10.96.0.2]\n`,
    6,
    16,
    'document 1: Service default/web: spec.clusterIPs[0]: want the same as spec.clusterIP ("10.96.0.1"), got "10.96.0.2"',
  ],
  [
    'a missing name, in a later document',
    `${head}---\napiVersion: v1\nkind: Service\nmetadata:\n  namespace: x\n`,
    8,
    3,
    'document 2: Service: metadata.name: want a name, got undefined',
  ],
  [
    'an object in a List',
    'apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: n1}\n  spec: {podCIDRs: 7}\n',
    7,
    20,
    'document 1, items[0]: Node n1: spec.podCIDRs: want an array, got 7',
  ],
  ['no kind', 'apiVersion: v1\nmetadata: {}\n', 1, 1, 'document 1: kind: want a string such as "Service"'],
  ['no object', 'just text\n', 1, 1, 'document 1: want a Kubernetes object'],
  [
    'a List of something else',
    'apiVersion: v1\nkind: List\nitems:\n- 7\n',
    4,
    3,
    'document 1, items[0]: want a Kubernetes object',
  ],
  ['items that are none', 'apiVersion: v1\nkind: List\nitems: x\n', 3, 8, 'document 1: items: want an array'],
  [
    'a slice without addressType',
    'apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s}\n',
    1,
    1,
    'document 1: EndpointSlice default/s: addressType: want IPv4 or IPv6 or FQDN, got ""',
  ],
] as const) {
  test(`${name} is reported with its position`, async () => {
    const { faults } = await read(text);
    assert.deepEqual(
      faults.map((fault) => [fault.message, fault.position]),
      [[message, { line, column }]],
    );
  });
}

test('errors in JSON have positions', async () => {
  const text = '{\n\t"apiVersion": "v1", "kind": "Service",\n\t"metadata": {"name": 5}\n}\n';
  const { faults } = await read(text, true);
  assert.match(faults[0]?.message ?? '', /metadata\.name: want a string, got 5/);
  assert.deepEqual(faults[0]?.position, { line: 3, column: 23 });
  await assert.rejects(
    read('{\n"a": }\n]', true),
    (error) => error instanceof ManifestError && error.position !== undefined,
  );
});

const serviceList = (...services: readonly object[]) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ServiceList', items: services });

test('every invalid object of a file is reported and the others are read', async () => {
  const text = serviceList(
    service({ clusterIP: '10.96.0.1' }, { name: 'a' }),
    service({ clusterIP: 'x' }, { name: 'b' }),
    service({ clusterIP: '10.96.0.3' }, { name: 'c' }),
    service({ clusterIP: 7 }, { name: 'd' }),
  );
  const { entries, faults } = await read(text, true);
  assert.deepEqual(
    entries.services.map(({ key }) => key),
    ['default/a', 'default/c'],
  );
  assert.deepEqual(
    faults.map(({ message }) => message),
    [
      'document 1, items[1]: Service default/b: spec.clusterIP: want an IP address, got "x"',
      'document 1, items[3]: Service d: spec.clusterIP: want a string, got 7',
    ],
  );
});

test('an invalid object keeps its last valid form, and its fault says so', async () => {
  const first = await read(
    serviceList(
      service({ clusterIP: '10.96.0.1' }, { name: 'a' }),
      service({ clusterIP: '10.96.0.2' }, { name: 'b' }),
    ),
  );
  const invalid = serviceList(service({ clusterIP: 7 }, { name: 'a' }));
  const { entries, faults } = await readContent(invalid, true, options, first);
  assert.deepEqual(
    entries.services.map(({ key, object }) => [key, object.clusterIP]),
    [['default/a', '10.96.0.1']],
  );
  assert.match(faults[0]?.message ?? '', /want a string, got 7; its last valid form stays in use$/);
});

test('while a document has no kind or no name, no object of its file is removed', async () => {
  const first = await read(
    serviceList(
      service({ clusterIP: '10.96.0.1' }, { name: 'a' }),
      service({ clusterIP: '10.96.0.2' }, { name: 'b' }),
    ),
  );
  const [a] = first.entries.services;
  for (const unnamed of [{ apiVersion: 'v1', metadata: { name: 'b' } }, service({}, { name: '' }), 'text']) {
    const text = `${JSON.stringify(service({ clusterIP: '10.96.0.9' }, { name: 'a' }))}\n---\n${JSON.stringify(unnamed)}`;
    const { entries, faults } = await readContent(text, false, options, first);
    assert.deepEqual(
      entries.services.map(({ key, object }) => [key, object.clusterIP]),
      [
        [a?.key, '10.96.0.9'],
        ['default/b', '10.96.0.2'],
      ],
    );
    assert.match(faults[0]?.message ?? '', /^document 2: .*; no object of this file is removed meanwhile$/);
  }
});
