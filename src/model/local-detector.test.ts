import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Family } from './ip.ts';
import { type LocalDetector, type LocalDetectorOptions, localDetectors } from './local-detector.ts';

const options = (mode: string, over: Partial<LocalDetectorOptions> = {}): LocalDetectorOptions => ({
  mode,
  clusterCIDRs: [],
  podCIDRs: [],
  bridgeInterface: '',
  interfaceNamePrefix: '',
  primary: 'IPv4',
  ...over,
});
const none: LocalDetector = { kind: 'none' };
const cidr = (text: string): LocalDetector => ({ kind: 'cidr', cidr: text });

const rows: [name: string, LocalDetectorOptions, Record<Family, LocalDetector>, severities: string[]][] = [
  [
    'both families of clusterCIDR, in any order',
    options('ClusterCIDR', { clusterCIDRs: ['2002:0:0:1234::/64', '10.0.0.0/14'] }),
    { IPv4: cidr('10.0.0.0/14'), IPv6: cidr('2002:0:0:1234::/64') },
    [],
  ],
  [
    'host bits are cleared and the text is canonical',
    options('ClusterCIDR', { clusterCIDRs: ['10.1.2.3/8', 'FD00:0:0::5/64'] }),
    { IPv4: cidr('10.0.0.0/8'), IPv6: cidr('fd00::/64') },
    [],
  ],
  [
    'one family leaves the other without',
    options('ClusterCIDR', { clusterCIDRs: ['10.0.0.0/14'] }),
    { IPv4: cidr('10.0.0.0/14'), IPv6: none },
    [],
  ],
  ['no clusterCIDR is worth a line', options('ClusterCIDR'), { IPv4: none, IPv6: none }, ['info']],
  [
    'primary family missing is worth a line',
    options('ClusterCIDR', { clusterCIDRs: ['fd00::/64'] }),
    { IPv4: none, IPv6: cidr('fd00::/64') },
    ['info'],
  ],
  [
    'NodeCIDR takes the first of each family, ignoring clusterCIDR',
    options('NodeCIDR', {
      clusterCIDRs: ['10.0.0.0/8'],
      podCIDRs: ['10.2.0.0/24', '10.3.0.0/24', 'fd00::/80'],
    }),
    { IPv4: cidr('10.2.0.0/24'), IPv6: cidr('fd00::/80') },
    [],
  ],
  [
    'entries are trimmed, empty ones skipped silently, bad ones reported',
    options('NodeCIDR', { podCIDRs: ['', '  ', '10.2.0.0', ' 10.4.0.0/24 '] }),
    { IPv4: cidr('10.4.0.0/24'), IPv6: none },
    ['error'],
  ],
  [
    'BridgeInterface serves both families',
    options('BridgeInterface', { bridgeInterface: 'cbr0' }),
    { IPv4: { kind: 'interface', name: 'cbr0' }, IPv6: { kind: 'interface', name: 'cbr0' } },
    [],
  ],
  [
    'InterfaceNamePrefix serves both families',
    options('InterfaceNamePrefix', { interfaceNamePrefix: 'veth' }),
    { IPv4: { kind: 'prefix', prefix: 'veth' }, IPv6: { kind: 'prefix', prefix: 'veth' } },
    [],
  ],
  [
    'any other mode detects nothing',
    options('Guess', { clusterCIDRs: ['10.0.0.0/8'] }),
    { IPv4: none, IPv6: none },
    [],
  ],
];

for (const [name, input, detectors, severities] of rows) {
  test(`local detectors: ${name}`, () => {
    const found = localDetectors(input);
    assert.deepEqual(found.detectors, detectors);
    assert.deepEqual(
      found.problems.map((problem) => problem.severity),
      severities,
    );
  });
}

test('a bad CIDR is reported with its source', () => {
  const { problems } = localDetectors(
    options('ClusterCIDR', { clusterCIDRs: ['10.0.0.0/33', '10.0.0.0/8'] }),
  );
  assert.deepEqual(problems, [
    { severity: 'error', text: 'clusterCIDR: "10.0.0.0/33" is not a CIDR; ignored' },
  ]);
});

test('an interface name that is too long for rules is refused', () => {
  const named = (bridgeInterface: string) => localDetectors(options('BridgeInterface', { bridgeInterface }));
  const begins = (interfaceNamePrefix: string) =>
    localDetectors(options('InterfaceNamePrefix', { interfaceNamePrefix }));
  named('fifteen-bytes15');
  assert.throws(() => named('fifteen-bytes-ü'), {
    message: 'detectLocal.bridgeInterface: "fifteen-bytes-ü" is longer than 15 bytes',
  });
  begins('fourteen-bytes');
  assert.throws(() => begins('fifteen-bytes15'), {
    message: 'detectLocal.interfaceNamePrefix: "fifteen-bytes15" is longer than 14 bytes',
  });
});
