import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../inspect/api.ts';
import type { TracedConnection, TraceReport } from '../../trace/report.ts';
import { traceText } from './trace-text.ts';

const plain = (_style: string, text: string) => text;
const way = '→ shop/web:http/TCP 10.96.0.10:80 → 10.244.2.7:8080';

function connection(source: string, more: Partial<TracedConnection> = {}): TracedConnection {
  const verdict = more.verdict ?? 'Delivered to 10.244.2.7:8080, which answered';
  return {
    family: 'IPv4',
    protocol: 'TCP',
    source,
    destination: '10.96.0.10:80',
    service: 'shop/web:http/TCP',
    endpoint: '10.244.2.7:8080',
    masqueradedAs: null,
    entered: 'veth3',
    left: 'veth4',
    outcome: 'answered',
    culprit: null,
    verdict,
    headline: `${verdict}: ${source} ${way}`,
    reasons: [],
    passed: [
      { hook: 'prerouting', chains: ['ip kube-proxy nat-prerouting'] },
      { hook: 'forward', chains: [] },
    ],
    steps: ['ip kube-proxy nat-prerouting rule 90: accept'],
    ...more,
  };
}

function text(connections: TracedConnection[], more: Partial<TraceReport> = {}, isWide = false): string {
  const report: TraceReport = {
    apiVersion: API_VERSION,
    kind: 'Trace',
    mode: null,
    time: '2026-01-01T00:00:00Z',
    seconds: 3,
    subject: 'shop/web',
    limit: 5,
    isIncomplete: false,
    notShown: [],
    connections,
    ...more,
  };
  return traceText(report, plain, { width: undefined, isWide });
}

test('one connection is told with its headline and its way', () => {
  assert.equal(
    text([connection('10.244.1.5:40000')]),
    `Delivered to 10.244.2.7:8080, which answered: 10.244.1.5:40000 ${way}
  entered   veth3
  Service   shop/web:http/TCP at 10.96.0.10:80
  endpoint  10.244.2.7:8080
  passed    prerouting: ip kube-proxy nat-prerouting
  left      veth4

Followed 1 connection in 3s.
`,
  );
});

test('connections with the same fate are told together, and those that failed come first', () => {
  const dropped = { outcome: 'dropped', verdict: 'Dropped by table inet firewall', left: null } as const;
  const shown = text(
    [
      connection('10.244.1.5:1'),
      connection('10.244.1.5:2', dropped),
      connection('10.244.1.5:3', { ...dropped, entered: null }),
    ],
    { limit: 3 },
  );
  assert.match(
    shown,
    /^2 connections: Dropped by table inet firewall\n {2}10\.244\.1\.5:2 →.*\n {2}10\.244\.1\.5:3 →/,
  );
  assert.match(shown, /\n\nDelivered to .*: 10\.244\.1\.5:1 →/);
  assert.match(shown, /Followed 3 connections in 3s, as many as --packets allows\.\n$/);
});

test('with -o wide every step is shown', () => {
  assert.match(
    text([connection('10.244.1.5:1')], {}, true),
    /steps of 10\.244\.1\.5:1 → 10\.96\.0\.10:80\n {4}ip kube-proxy nat-prerouting rule 90: accept\n/,
  );
});

test('nothing seen, lost steps and what a trace cannot show are told', () => {
  assert.equal(
    text([], { isIncomplete: true, notShown: ['Rules of legacy iptables (tables nat) are not shown.'] }),
    `No first packet of a connection of shop/web came to this node in 3s.
The kernel could not report every step: ways may have gaps.
Rules of legacy iptables (tables nat) are not shown.
`,
  );
});
