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
