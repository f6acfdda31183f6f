import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION, type FamilyStatus, type StatusReport } from '../inspect/api.ts';
import { statusText } from './status.ts';
import type { Paint } from './terminal.ts';

const plain: Paint = (_style, text) => text;

const family: FamilyStatus = {
  family: 'IPv4',
  healthy: true,
  initialised: true,
  nodeIP: '192.0.2.5',
  servicePorts: 2,
  endpoints: 5,
  serviceCIDRs: ['10.96.0.0/16'],
  pending: { services: 1, endpointSlices: 2 },
  syncs: 7,
  lastSync: { time: '2026-01-01T00:00:58Z', seconds: 0.02, kind: 'partial', changedServicePorts: 1 },
  failures: 1,
  lastFailure: { time: '2026-01-01T00:00:30Z', message: 'ENOBUFS' },
  repairs: 1,
  lastRepair: '2026-01-01T00:00:50Z',
  lastRepairCause: { by: 'nft[42]', changes: 'rule deleted: 3' },
};

function report(parts: Partial<StatusReport> = {}): StatusReport {
  return {
    apiVersion: API_VERSION,
    kind: 'Status',
    version: 'v1.37.0',
    product: { version: '0.9.0', commit: '0123456789abcdef', treeState: 'clean' },
    mode: 'nftables',
    nodeName: 'n1',
    time: '2026-01-01T00:01:00Z',
    startTime: '2026-01-01T00:00:00Z',
    healthy: true,
    state: 'healthy',
    problems: [],
    families: [family],
    sources: { kind: 'APIServer', location: 'https://192.0.2.9:6443', watches: [], errors: [] },
    configuration: null,
    setAside: [],
    ...parts,
  };
}

test('status shows health, the families, repairs and failures', () => {
  assert.equal(
    statusText(report(), plain),
    `kube-proxy v1.37.0 (kube-proxy-ts 0.9.0, commit 0123456789ab) in nftables mode on node n1, up 1m: healthy

FAMILY  NODE IP    SERVICE PORTS  ENDPOINTS  LAST SYNC  TOOK  KIND     CHANGED  SYNCS  FAILED  REPAIRS  PENDING
IPv4    192.0.2.5  2              5          2s ago     20ms  partial  1        7      1       1        3

IPv4: service CIDRs: 10.96.0.0/16

IPv4: last repair 10s ago: nft[42] had changed our rules (rule deleted: 3)

IPv4: last failure 30s ago, succeeded since: ENOBUFS

Objects from the API server https://192.0.2.9:6443

Configuration from flags, without a file
`,
  );
});

test('status highlights a lasting failure, ill health and objects that are not programmed', () => {
  const families = [{ ...family, lastSync: null }];
  const setAside = [
    { family: 'IPv4', reason: 'invalid', object: 'Service a/b', problems: ['x is wrong'] },
  ] as const;
  const problems = [
    {
      kind: 'RulesWrong',
      family: 'IPv6',
      since: '2026-01-01T00:00:55Z',
      outage: true,
      text: 'rules are wrong',
    },
    { kind: 'WatchBroken', family: null, since: null, outage: false, text: 'no answer' },
  ] as const;
  const text = statusText(report({ state: 'unhealthy', problems, families, setAside }), (style, words) =>
    style === 'red' ? `<${words}>` : words,
  );
  assert.match(
    text,
    /up 1m: <UNHEALTHY>\n {2}! <IPv6: rules are wrong> \(for 5s\)\n {2}! no answer\n\nFAMILY/,
  );
  assert.match(text, /IPv4: <last failure 30s ago: ENOBUFS>/);
  assert.match(text, /1 object not \(fully\) programmed:\n {2}IPv4, invalid: x is wrong\n$/);
});

test('status tells which watches are stale, why, and that a restart would fail', () => {
  const watch = { reason: null, since: '2026-01-01T00:00:10Z', lastEvent: '2026-01-01T00:00:59Z' };
  const lost = { since: '2026-01-01T00:00:20Z', reason: 'ECONNREFUSED', lastEvent: null };
  const text = statusText(
    report({
      sources: {
        kind: 'APIServer',
        location: 'https://192.0.2.9:6443',
        watches: [
          { ...watch, resource: 'nodes', state: 'connected' },
          { ...lost, resource: 'services', state: 'broken' },
        ],
        errors: [],
      },
      configuration: {
        file: '/etc/config.yaml',
        sha256: '0123456789abcdef',
        readTime: '2026-01-01T00:00:00Z',
        generation: 3,
        generationTime: '2026-01-01T00:00:20Z',
        lastChange: {
          time: '2026-01-01T00:00:20Z',
          outcome: 'Applied',
          fields: ['nftables.masqueradeAll', 'nodePortAddresses'],
          reason: null,
        },
        onDisk: { state: 'Unusable', since: '2026-01-01T00:00:30Z', reason: 'bad YAML' },
      },
    }),
    plain,
  );
  assert.ok(
    text.includes(`
Objects from the API server https://192.0.2.9:6443
RESOURCE  WATCH              LAST EVENT  REASON
nodes     connected for 50s  1s ago
services  stale for 40s      never       ECONNREFUSED

Configuration /etc/config.yaml, generation 3, read 1m ago, sha256 0123456789ab
  THE FILE ON DISK CANNOT BE USED, a restart would fail: bad YAML
  last change applied without a restart 40s ago: nftables.masqueradeAll, nodePortAddresses
`),
    text,
  );
});

test('status tells which manifests are not in effect', () => {
  const error = { path: '/m/web.yaml', position: '3:7', reason: 'bad indent', since: '2026-01-01T00:00:50Z' };
  const sources = { kind: 'Manifests', location: '/m', watches: [], errors: [error] } as const;
  assert.match(
    statusText(report({ sources }), plain),
    /Objects from manifests in \/m\n {2}\/m\/web\.yaml:3:7: bad indent \(for 10s\)\n/,
  );
});

test('EndpointSlices with unusable parts have a heading that does not contradict a healthy state', () => {
  const setAside = [
    { family: 'IPv4', reason: 'invalid', object: 'EndpointSlice a/b-1', problems: ['x is no port'] },
  ] as const;
  const text = statusText(report({ setAside }), plain);
  assert.match(text, /: healthy\n/);
  assert.match(
    text,
    /\n1 EndpointSlice with parts that no proxy can use:\n {2}IPv4, invalid: x is no port\n/,
  );
  assert.doesNotMatch(text, /programmed/);
});

test('status shows the fast path, with devices that are left out, or why there is none', () => {
  const fastPath: FamilyStatus['fastPath'] = {
    scope: 'services',
    after: 20,
    inUse: true,
    reason: null,
    counting: true,
    devices: ['eth0', 'veth1'],
    leftOut: [{ device: 'lo', reason: 'loopback' }],
  };
  const text = (parts: Partial<NonNullable<FamilyStatus['fastPath']>>) =>
    statusText(report({ families: [{ ...family, fastPath: { ...fastPath, ...parts } }] }), plain);
  assert.match(
    text({}),
    /IPv4: fast path for connections of Services after 20 packets, on 2 devices; left out: lo \(loopback\)\n/,
  );
  assert.match(text({ scope: 'all', leftOut: [] }), /fast path for all forwarded connections .* 2 devices\n/);
  assert.match(
    text({ counting: false }),
    /nf_conntrack_acct is 0: no new connection gets to the fast path\n/,
  );
  assert.match(text({ inUse: false, reason: 'no flowtables' }), /IPv4: no fast path: no flowtables\n/);
});
