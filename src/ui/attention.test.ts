import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serviceReport } from '../../test/service-report.ts';
import type { ServiceReport, StatusReport } from '../inspect/api.ts';
import { attentionOf } from './attention.ts';
import { faultyObjects, rowOf } from './service-row.ts';

const status: StatusReport = {
  apiVersion: 'inspect.kube-proxy-ts/v1',
  kind: 'Status',
  version: 'v1.37.0',
  mode: 'nftables',
  nodeName: 'node-a',
  time: '2026-01-01T00:00:00Z',
  startTime: '2026-01-01T00:00:00Z',
  healthy: true,
  state: 'healthy',
  problems: [],
  families: [],
  sources: { kind: 'Manifests', location: '/shop', watches: [], errors: [] },
  configuration: null,
  setAside: [],
};

function titles(report: StatusReport, ...services: Partial<ServiceReport>[]): string[] {
  const faulty = faultyObjects(report.setAside);
  const rows = services.map((fields) => rowOf(serviceReport(fields), faulty));
  return attentionOf(report, rows).map(({ severity, title }) => `${severity}: ${title}`);
}

test('nothing needs attention when all is well', () => {
  assert.deepEqual(titles(status, {}), []);
});

test('outages come first, then Services that refuse, then notes', () => {
  const problem = {
    kind: 'SyncFailing',
    family: null,
    since: null,
    outage: true,
    text: 'the kernel is busy',
  };
  assert.deepEqual(
    titles(
      { ...status, problems: [problem] },
      { endpoints: { known: 2, cluster: 1, local: 0 } },
      { internal: { action: 'drop', reason: 'policy' } },
      { internal: { action: 'reject', reason: 'none' } },
    ),
    [
      'outage: Services of this node do not work',
      'warning: No endpoints: clients are refused',
      'warning: Dropped by policy: clients get no answer',
      'note: Some endpoints take no traffic',
    ],
  );
});

test('a contested address is shown once, with winner and loser', () => {
  const lost = [{ frontend: 'external IP 198.51.100.1:80/TCP', owner: 'shop/cart:http/TCP' }];
  const problems = [
    'service port shop/web:http/TCP: external IP 198.51.100.1:80/TCP belongs to service port shop/cart:http/TCP',
  ];
  const setAside = [{ family: 'IPv4', reason: 'refused', object: 'shop/web:http/TCP', problems }] as const;
  const row = rowOf(serviceReport({ lost }), faultyObjects(setAside));
  const [group, ...others] = attentionOf({ ...status, setAside }, [row]);
  assert.deepEqual(others, []);
  assert.deepEqual(group?.items, [
    {
      service: { namespace: 'shop', name: 'web', label: 'shop/web:http/TCP (IPv4)' },
      text: 'external IP 198.51.100.1:80/TCP belongs to shop/cart:http/TCP',
    },
  ]);
});
