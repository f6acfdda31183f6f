import assert from 'node:assert/strict';
import { test } from 'node:test';
import { service } from '../../test/cluster/objects.ts';
import type { Family } from './ip.ts';
import { describeProblem } from './object-problem.ts';
import type { ServiceObject, ServicePortObject } from './objects.ts';
import { isExternallyAccessible, type ServicePort, sameServicePort } from './service-port.ts';
import { servicePortsOf } from './service-ports.ts';

function read(object: ServiceObject, family: Family = 'IPv4') {
  const { ports, problems } = servicePortsOf(object, family);
  return { ports, problems: problems.map(describeProblem) };
}

/** The only port of a Service that has no problems. */
function only(fields: Partial<ServiceObject>, family: Family = 'IPv4'): ServicePort {
  const { ports, problems } = read(service(fields), family);
  assert.deepEqual(problems, []);
  assert.equal(ports.length, 1);
  const [port] = ports;
  assert.ok(port);
  return port;
}

test('a plain Service gives one service port per port and family', () => {
  const object = service({}, [{}, { name: '', protocol: 'UDP', port: 53, nodePort: 30053 }]);
  const { ports, problems } = read(object);
  assert.deepEqual(problems, []);
  assert.deepEqual(ports, [
    {
      key: 'a/web:http/TCP',
      namespace: 'a',
      name: 'web',
      uid: '',
      createdAt: 0,
      portName: 'http',
      protocol: 'TCP',
      family: 'IPv4',
      clusterIP: '10.96.0.1',
      port: 80,
      nodePort: 0,
      affinitySeconds: 0,
      balance: 'default',
      externalIPs: [],
      loadBalancerVIPs: [],
      sourceRanges: [],
      externalPolicyLocal: false,
      internalPolicyLocal: false,
      healthCheckNodePort: 0,
      resetsDeparted: false,
      unsupportedBalance: undefined,
      unsupportedReset: false,
    },
    { ...ports[0], key: 'a/web/UDP', portName: '', protocol: 'UDP', port: 53, nodePort: 30053 },
  ]);
  assert.deepEqual(
    read(object, 'IPv6').ports.map(({ family, clusterIP }) => [family, clusterIP]),
    [
      ['IPv6', 'fd00:96::1'],
      ['IPv6', 'fd00:96::1'],
    ],
  );
});

test('each family gets its own cluster IP', () => {
  const rows: readonly (readonly [
    fields: Partial<ServiceObject>,
    ipv4: string | undefined,
    ipv6: string | undefined,
  ])[] = [
    [{ clusterIP: '' }, undefined, undefined],
    [{ clusterIP: 'None' }, undefined, undefined],
    [{ type: 'ExternalName' }, undefined, undefined],
    [{ ipFamilies: [] }, '10.96.0.1', undefined],
    [{ ipFamilies: [], clusterIP: 'fd00::1' }, undefined, 'fd00::1'],
    [{ ipFamilies: ['IPv4'] }, '10.96.0.1', undefined],
    [{ ipFamilies: ['IPv6', 'IPv4'], clusterIPs: ['fd00::9', '10.9.9.9'] }, '10.9.9.9', 'fd00::9'],
    [{ ipFamilies: ['IPv4', 'IPv6'], clusterIPs: ['10.9.9.9'] }, '10.9.9.9', undefined],
    [{ clusterIPs: ['010.96.0.1', 'FD00:0::1'] }, '10.96.0.1', 'fd00::1'],
    [{ clusterIPs: [] }, undefined, undefined],
  ];
  for (const [fields, ipv4, ipv6] of rows) {
    for (const [family, expected] of [
      ['IPv4', ipv4],
      ['IPv6', ipv6],
    ] as const) {
      const { ports, problems } = read(service(fields), family);
      assert.equal(ports[0]?.clusterIP, expected, `${JSON.stringify(fields)} ${family}`);
      assert.deepEqual(problems, [], JSON.stringify(fields));
    }
  }
});

test('external IPs are canonical, of this family, in order', () => {
  const externalIPs = ['198.51.100.2', 'fd00::2', '198.51.100.010', ' ', 'fd00::0:1'];
  assert.deepEqual(only({ externalIPs }).externalIPs, ['198.51.100.2', '198.51.100.10']);
  assert.deepEqual(only({ externalIPs }, 'IPv6').externalIPs, ['fd00::2', 'fd00::1']);
});

test('load balancer VIPs have mode VIP or none and this family, for any type of Service', () => {
  const loadBalancerIngress = [
    { ip: '192.0.2.1', ipMode: 'Proxy' },
    { ip: '192.0.2.2' },
    { ip: '' },
    { ip: '2001:db8::2', ipMode: 'VIP' },
  ];
  assert.deepEqual(only({ loadBalancerIngress }).loadBalancerVIPs, ['192.0.2.2']);
  assert.deepEqual(only({ loadBalancerIngress }, 'IPv6').loadBalancerVIPs, ['2001:db8::2']);
});

test('source ranges are canonical, of this family, and dropped when one allows everything', () => {
  const rows: readonly (readonly [
    ranges: readonly string[],
    ipv4: readonly string[],
    ipv6: readonly string[],
  ])[] = [
    [[], [], []],
    [['10.1.2.3/8'], ['10.0.0.0/8'], []],
    [[' 203.0.113.5/24 ', '', '  '], ['203.0.113.0/24'], []],
    [['10.0.0.0/8', 'fd00::/16', '10.0.0.0/8'], ['10.0.0.0/8', '10.0.0.0/8'], ['fd00::/16']],
    [['10.0.0.0/8', '0.0.0.0/0'], [], []],
    [['10.0.0.0/8', '::/0'], ['10.0.0.0/8'], []],
    [['fd00::/16', '1.2.3.4/0'], [], ['fd00::/16']],
  ];
  for (const [loadBalancerSourceRanges, ipv4, ipv6] of rows) {
    assert.deepEqual(only({ loadBalancerSourceRanges }).sourceRanges, ipv4);
    assert.deepEqual(only({ loadBalancerSourceRanges }, 'IPv6').sourceRanges, ipv6);
  }
});

test('policy Local applies only where outside traffic can arrive', () => {
  const Local = 'Local';
  const rows: readonly (readonly [fields: Partial<ServiceObject>, external: boolean, internal: boolean])[] = [
    [{}, false, false],
    [{ externalTrafficPolicy: Local }, false, false],
    [{ externalTrafficPolicy: Local, type: 'NodePort' }, true, false],
    [{ externalTrafficPolicy: Local, externalIPs: ['fd00::1'] }, true, false],
    [{ externalTrafficPolicy: 'Cluster', type: 'NodePort' }, false, false],
    [{ externalTrafficPolicy: '', type: 'NodePort' }, false, false],
    [{ externalTrafficPolicy: Local, type: 'LoadBalancer', healthCheckNodePort: 32100 }, true, false],
    [{ internalTrafficPolicy: Local }, false, true],
    [{ internalTrafficPolicy: '' }, false, false],
  ];
  for (const [fields, external, internal] of rows) {
    const port = only(fields);
    assert.equal(port.externalPolicyLocal, external, JSON.stringify(fields));
    assert.equal(port.internalPolicyLocal, internal, JSON.stringify(fields));
  }
});

test('the health check node port needs a load balancer under policy Local', () => {
  const both = { externalTrafficPolicy: 'Local', healthCheckNodePort: 32100 };
  assert.equal(only({ ...both, type: 'LoadBalancer' }).healthCheckNodePort, 32100);
  assert.equal(only({ ...both, type: 'NodePort' }).healthCheckNodePort, 0);
  assert.equal(
    only({ ...both, type: 'LoadBalancer', externalTrafficPolicy: 'Cluster' }).healthCheckNodePort,
    0,
  );
});

test('affinity has the given timeout or the default', () => {
  const seconds = (fields: Partial<ServiceObject>) => only(fields).affinitySeconds;
  assert.equal(seconds({ sessionAffinity: 'ClientIP' }), 10_800);
  assert.equal(seconds({ sessionAffinity: 'ClientIP', affinityTimeoutSeconds: 60 }), 60);
  assert.equal(seconds({ sessionAffinity: 'None', affinityTimeoutSeconds: 60 }), 0);
});

test('an invalid field is ignored and reported; the rest is used', () => {
  const lb = { type: 'LoadBalancer', externalTrafficPolicy: 'Local' };
  const rows: readonly (readonly [
    fields: Partial<ServiceObject>,
    ports: readonly Partial<ServicePortObject>[],
    left: string,
    problem: string,
  ])[] = [
    [
      {},
      [{ port: 0 }, { name: 'b' }],
      'a/web:b/TCP',
      'Service a/web: spec.ports[0].port: "0" is not a port number from 1 to 65535',
    ],
    [
      {},
      [{ name: 'b' }, { port: 65536 }],
      'a/web:b/TCP',
      'Service a/web: spec.ports[1].port: "65536" is not a port number from 1 to 65535',
    ],
    [
      {},
      [{ port: 1.5 }],
      '',
      'Service a/web: spec.ports[0].port: "1.5" is not a port number from 1 to 65535',
    ],
    [
      {},
      [{ nodePort: -1 }],
      'a/web:http/TCP',
      'Service a/web: spec.ports[0].nodePort: "-1" is not a port number from 1 to 65535',
    ],
    [
      {},
      [{ protocol: 'ICMP' }, { name: 'b' }],
      'a/web:b/TCP',
      'Service a/web: spec.ports[0].protocol: "ICMP" is not TCP, UDP or SCTP',
    ],
    [
      {},
      [{ port: 80 }, { port: 81 }],
      'a/web:http/TCP',
      'Service a/web: spec.ports[1].name: "http" is the second TCP port of that name',
    ],
    [
      { clusterIPs: ['fd00::1'], ipFamilies: ['IPv4'] },
      [{}],
      '',
      'Service a/web: spec.clusterIPs[0]: "fd00::1" is not an IPv4 address',
    ],
    [
      { clusterIP: 'bogus', ipFamilies: [] },
      [{}],
      '',
      'Service a/web: spec.clusterIP: "bogus" is not an IP address',
    ],
    [
      { externalIPs: ['1.2.3'] },
      [{}],
      'a/web:http/TCP',
      'Service a/web: spec.externalIPs[0]: "1.2.3" is not an IP address',
    ],
    [
      { loadBalancerIngress: [{ ip: 'lb' }] },
      [{}],
      'a/web:http/TCP',
      'Service a/web: status.loadBalancer.ingress[0].ip: "lb" is not an IP address',
    ],
    [
      { loadBalancerSourceRanges: ['10.0.0.0/8', 'bogus'] },
      [{}],
      'a/web:http/TCP',
      'Service a/web: spec.loadBalancerSourceRanges[1]: "bogus" is not a CIDR',
    ],
    [
      { sessionAffinity: 'ClientIP', affinityTimeoutSeconds: 0 },
      [{}],
      'a/web:http/TCP',
      'Service a/web: spec.sessionAffinityConfig.clientIP.timeoutSeconds: "0" is not from 1 to 86400',
    ],
    [
      { ...lb, healthCheckNodePort: 0 },
      [{}],
      'a/web:http/TCP',
      'Service a/web: spec.healthCheckNodePort: "0" leaves a load balancer under policy Local without a health check',
    ],
    [
      { ...lb, healthCheckNodePort: 70000 },
      [{}],
      'a/web:http/TCP',
      'Service a/web: spec.healthCheckNodePort: "70000" is not a port number from 1 to 65535',
    ],
    [{ name: 'a:b' }, [{}], '', 'Service a/a:b: metadata.name: "a:b" is not a Service name'],
    [{ namespace: '' }, [{}], '', 'Service web: metadata.namespace: "" is not a namespace'],
    [{ name: 'w\0' }, [{}], '', 'Service a/w\\u0000: metadata.name: "w\\u0000" has a control character'],
    [
      { namespace: 'a\x1b' },
      [{}],
      '',
      'Service a\\u001b/web: metadata.namespace: "a\\u001b" has a control character',
    ],
    [
      {},
      [{ name: 'a\0b' }, { name: 'c' }],
      'a/web:c/TCP',
      'Service a/web: spec.ports[0].name: "a\\u0000b" has a control character',
    ],
    [
      {},
      [{ name: 'a\nb' }, { name: 'say "x"' }],
      'a/web:say "x"/TCP',
      'Service a/web: spec.ports[0].name: "a\\nb" has a control character',
    ],
  ];
  for (const [fields, ports, left, problem] of rows) {
    const result = read(service(fields, ports));
    assert.equal(result.ports.map(({ key }) => key).join(' '), left, problem);
    assert.deepEqual(result.problems, [problem]);
  }
});

test('invalid values are dropped or replaced by the default', () => {
  const lb = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 70000 };
  assert.equal(read(service(lb)).ports[0]?.healthCheckNodePort, 0);
  assert.equal(read(service({}, [{ nodePort: 99999 }])).ports[0]?.nodePort, 0);
  const sticky = service({ sessionAffinity: 'ClientIP', affinityTimeoutSeconds: 100_000 });
  assert.equal(read(sticky).ports[0]?.affinitySeconds, 10_800);
  // As upstream's map of ports does, the last of two twins stays.
  assert.equal(read(service({}, [{ port: 80 }, { port: 81 }])).ports[0]?.port, 81);
});

test('a missing protocol is TCP', () => {
  assert.equal(read(service({}, [{ protocol: '' }])).ports[0]?.protocol, 'TCP');
});

test('an annotation asks for a hash, which is reported where the mode has none', () => {
  const balanceOf = (balance: string, hashes?: boolean) => {
    const { ports, problems } = servicePortsOf(service({ annotations: { balance } }), 'IPv4', {
      hashes,
      resetDeparted: 'off',
    });
    return [ports[0]?.balance, ports[0]?.unsupportedBalance, ...problems.map(describeProblem)];
  };
  const field = 'Service a/web: metadata.annotations["kube-proxy-ts.dev/balance"]';
  assert.deepEqual(balanceOf('hash', true), ['hash', undefined]);
  assert.deepEqual(balanceOf('hash-client', true), ['hash-client', undefined]);
  assert.deepEqual(balanceOf('hash'), [
    'default',
    'hash',
    `${field}: "hash" is not possible in this proxy mode; the Service is served without it`,
  ]);
  const wrong = `${field}: "Hash" is neither hash nor hash-client`;
  assert.deepEqual(balanceOf('Hash', true), ['default', undefined, wrong]);
});

test('a TCP port says that the mode cannot do the resets that its Service asks for', () => {
  const read = (annotation: string, resetDeparted: 'off' | 'impossible') => {
    const both = service({ annotations: { 'reset-departed': annotation } }, [
      {},
      { protocol: 'UDP', name: 'dns' },
    ]);
    const { ports } = servicePortsOf(both, 'IPv4', { resetDeparted });
    return ports.map(({ resetsDeparted, unsupportedReset }) => [resetsDeparted, unsupportedReset]);
  };
  const neither = [false, false];
  assert.deepEqual(read('tcp', 'off'), [[true, false], neither]);
  assert.deepEqual(read('tcp', 'impossible'), [[false, true], neither]);
  assert.deepEqual(read('off', 'impossible'), [neither, neither]);
});

test("a hash of the client's port contradicts client affinity, which is reported; one of its address does not", () => {
  const read = (balance: string, hashes: boolean) => {
    const sticky = service({ sessionAffinity: 'ClientIP', annotations: { balance } });
    const { ports, problems } = servicePortsOf(sticky, 'IPv4', { hashes, resetDeparted: 'off' });
    return [ports[0]?.balance, ...problems.map(({ fault }) => fault)];
  };
  const contradiction =
    'contradicts sessionAffinity ClientIP, which decides; the hash chooses only for clients without a record';
  assert.deepEqual(read('hash', true), ['hash', contradiction]);
  assert.deepEqual(read('hash-client', true), ['hash-client']);
  // Where there is no hash, that alone is reported.
  assert.equal(read('hash', false).length, 2);
});

test('service ports are equal when every field is', () => {
  const a = only({});
  assert.ok(sameServicePort(a, only({})));
  const others: Partial<ServicePort>[] = [
    { key: 'x' },
    { uid: 'x' },
    { createdAt: 1 },
    { family: 'IPv6' },
    { clusterIP: 'x' },
    { port: 1 },
    { nodePort: 1 },
    { affinitySeconds: 1 },
    { balance: 'hash' },
    { externalIPs: ['x'] },
    { loadBalancerVIPs: ['x'] },
    { sourceRanges: ['x'] },
    { externalPolicyLocal: true },
    { internalPolicyLocal: true },
    { healthCheckNodePort: 1 },
    { resetsDeparted: true },
    { unsupportedBalance: 'hash' },
    { unsupportedReset: true },
  ];
  for (const other of others)
    assert.equal(sameServicePort(a, { ...a, ...other }), false, JSON.stringify(other));
  // Whatever a field is called, the comparison above has to know it; identity is in the key.
  const compared = [...others.flatMap(Object.keys), 'namespace', 'name', 'portName', 'protocol'];
  assert.deepEqual(Object.keys(a).sort(), compared.sort());
});

test('a node port, VIP or external IP makes a port externally accessible', () => {
  const a = only({});
  assert.equal(isExternallyAccessible(a), false);
  for (const more of [{ nodePort: 1 }, { externalIPs: ['x'] }, { loadBalancerVIPs: ['x'] }]) {
    assert.equal(isExternallyAccessible({ ...a, ...more }), true);
  }
});
