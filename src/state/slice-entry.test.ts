import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endpointObjects, numbers, slice } from '../../test/cluster/objects.ts';
import { sameEndpoint } from '../model/endpoint.ts';
import { describeProblem } from '../model/object-problem.ts';
import type { EndpointSliceObject, SlicePortObject } from '../model/objects.ts';
import { readSlice, type SliceEntry, sameSlice } from './slice-entry.ts';

function read(object: EndpointSliceObject, previous?: SliceEntry): { entry: SliceEntry; problems: string[] } {
  const problems: string[] = [];
  const family = object.addressType === 'IPv6' ? 'IPv6' : 'IPv4';
  const onProblem = (problem: Parameters<typeof describeProblem>[0]) =>
    problems.push(describeProblem(problem));
  return { entry: readSlice(object, previous, { family, nodeName: 'n1', onProblem }), problems };
}

test('an endpoint takes its fields from the slice', () => {
  const { entry } = read(slice('s', '10R@n1 1T@n2/za!n3'));
  assert.deepEqual(entry.lists, [
    {
      portName: 'http',
      protocol: 'TCP',
      endpoints: [
        {
          id: '10.1.0.10:80',
          ip: '10.1.0.10',
          port: 80,
          isLocal: true,
          ready: true,
          serving: true,
          terminating: false,
        },
        {
          id: '10.1.0.1:80',
          ip: '10.1.0.1',
          port: 80,
          isLocal: false,
          ready: false,
          serving: true,
          terminating: true,
          zoneHints: ['za'],
          nodeHints: ['n3'],
        },
      ],
    },
  ]);
});

test('IPv6 endpoints are canonical and bracketed', () => {
  const endpoints = endpointObjects('1R@n1', 'IPv6').map((one) => ({ ...one, address: 'FD00:1:0::1' }));
  const object = slice('s', '', { addressType: 'IPv6', endpoints });
  assert.deepEqual(
    read(object).entry.lists[0]?.endpoints.map(({ id, ip }) => [id, ip]),
    [['[fd00:1::1]:80', 'fd00:1::1']],
  );
});

test('ports with one number share their endpoints, others have their own', () => {
  const ports = [
    { name: 'dns', protocol: 'UDP', port: 53 },
    { name: 'dns', protocol: 'TCP', port: 53 },
    { name: '', protocol: '', port: 80 },
  ];
  const [udp, tcp, plain] = read(slice('s', '1R@', { ports })).entry.lists;
  assert.equal(udp?.endpoints, tcp?.endpoints);
  assert.deepEqual([plain?.portName, plain?.protocol, plain?.endpoints[0]?.id], ['', 'TCP', '10.1.0.1:80']);
});

test('two port numbers with one name and protocol make one list', () => {
  const ports = [
    { name: 'http', protocol: 'TCP', port: 81 },
    { name: 'http', protocol: 'TCP', port: 80 },
  ];
  const { lists } = read(slice('s', '1R@ 2R@', { ports })).entry;
  assert.deepEqual(
    lists.map((list) => list.endpoints.map(({ id }) => id)),
    [['10.1.0.1:80', '10.1.0.1:81', '10.1.0.2:80', '10.1.0.2:81']],
  );
});

test('empty lists of hints are dropped', () => {
  const endpoints = endpointObjects('1R@').map((object) => ({ ...object, zoneHints: [], nodeHints: [] }));
  const endpoint = read(slice('s', '', { endpoints })).entry.lists[0]?.endpoints[0];
  assert.ok(endpoint && !('zoneHints' in endpoint) && !('nodeHints' in endpoint));
});

test('a slice without endpoints or without ports has no lists', () => {
  assert.deepEqual(read(slice('s', '')).entry.lists, []);
  assert.deepEqual(read(slice('s', '1R@', { ports: [] })).entry.lists, []);
});

test('invalid endpoints and ports are ignored and reported; the others are used', () => {
  const ports: readonly (readonly [port: SlicePortObject, problem: string])[] = [
    [{ protocol: 'TCP', port: 80 }, 'ports[0].name: "null" is not a port name'],
    [{ name: 'x', protocol: 'TCP' }, 'ports[0].port: "null" is not a port number from 1 to 65535'],
    [{ name: 'x', protocol: 'TCP', port: 0 }, 'ports[0].port: "0" is not a port number from 1 to 65535'],
    [
      { name: 'x', protocol: 'TCP', port: 65536 },
      'ports[0].port: "65536" is not a port number from 1 to 65535',
    ],
    [{ name: 'x', protocol: 'ICMP', port: 80 }, 'ports[0].protocol: "ICMP" is not TCP, UDP or SCTP'],
  ];
  for (const [port, problem] of ports) {
    const good = { name: 'http', protocol: 'TCP', port: 80 };
    const { entry, problems } = read(slice('s', '1R@', { ports: [port, good] }));
    assert.deepEqual(problems, [`EndpointSlice a/s: ${problem}`]);
    assert.deepEqual(
      entry.lists.map(({ portName }) => portName),
      ['http'],
    );
  }
  const addresses: readonly (readonly [address: string | undefined, problem: string])[] = [
    [undefined, 'endpoints[0].addresses[0]: "" is not an IP address'],
    ['', 'endpoints[0].addresses[0]: "" is not an IP address'],
    ['pod.example', 'endpoints[0].addresses[0]: "pod.example" is not an IP address'],
    ['fd00::1', 'endpoints[0].addresses[0]: "fd00::1" is not an IPv4 address'],
  ];
  for (const [address, problem] of addresses) {
    const { address: _, ...rest } = endpointObjects('1R@')[0] ?? {
      ready: true,
      serving: true,
      terminating: false,
    };
    const bad = address === undefined ? rest : { ...rest, address };
    const { entry, problems } = read(slice('s', '', { endpoints: [bad, ...endpointObjects('2R@')] }));
    assert.deepEqual(problems, [`EndpointSlice a/s: ${problem}`]);
    assert.equal(numbers(entry.lists[0]?.endpoints ?? []), '2');
  }
});

test('unchanged endpoints and lists are reused', () => {
  const { entry: before } = read(slice('s', '1R@ 2R@ 3R@'));
  const { entry: same } = read(slice('s', '3R@ 2R@ 1R@', { resourceVersion: '2' }), before);
  assert.equal(same.lists[0]?.endpoints, before.lists[0]?.endpoints);
  const { entry: after } = read(slice('s', '1R@ 2X@ 3R@ 4R@', { resourceVersion: '3' }), before);
  const kept = after.lists[0]?.endpoints.filter((e) => before.lists[0]?.endpoints.includes(e));
  assert.equal(numbers(kept ?? []), '1 3');
});

test('slices are the same only when they come from one write', () => {
  const object = slice('s', '1R@n1/za!n1 2R@n2');
  assert.ok(sameSlice(object, object));
  assert.ok(sameSlice(object, structuredClone(object)));
  const [first, second] = object.endpoints;
  assert.ok(first && second);
  const others: Partial<EndpointSliceObject>[] = [
    { resourceVersion: '2' },
    { serviceName: 'x' },
    { addressType: 'FQDN' },
    { triggerTime: 'x' },
    { ports: [] },
    { ports: [{ name: 'x', protocol: 'TCP', port: 80 }] },
    { ports: [{ name: 'http', protocol: 'UDP', port: 80 }] },
    { ports: [{ name: 'http', protocol: 'TCP', port: 81 }] },
    { endpoints: [first] },
    { endpoints: [second, first] },
    ...(
      [
        { address: 'x' },
        { ready: false },
        { serving: false },
        { terminating: true },
        { nodeName: 'x' },
        { zoneHints: ['x'] },
        { nodeHints: ['x'] },
        { zoneHints: [] },
      ] as const
    ).map((change) => ({ endpoints: [{ ...first, ...change }, second] })),
  ];
  for (const other of others)
    assert.equal(sameSlice(object, { ...object, ...other }), false, JSON.stringify(other));
});

test('endpoints are the same when every field is equal', () => {
  const endpoint = read(slice('s', '1R@n1/za!n1')).entry.lists[0]?.endpoints[0];
  assert.ok(endpoint);
  assert.ok(sameEndpoint(endpoint, { ...endpoint }));
  const changes = [
    { id: 'x' },
    { isLocal: false },
    { ready: false },
    { serving: false },
    { terminating: true },
    { zoneHints: ['x'] },
    { nodeHints: ['x'] },
  ];
  for (const change of changes) assert.equal(sameEndpoint(endpoint, { ...endpoint, ...change }), false);
  // The id is made of ip and port.
  assert.deepEqual(Object.keys(endpoint).sort(), [...changes.flatMap(Object.keys), 'ip', 'port'].sort());
});
