import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TraceStep } from '../../kernel/nft/trace.ts';
import { parseIP } from '../../model/ip.ts';
import { journeyOf } from './journey.ts';

const TRACER = 'tracer';

function headers(
  from: string,
  to: string,
  ports: [number, number],
): Pick<TraceStep, 'network' | 'transport'> {
  const [source, destination] = [from, to].map((address) => [...(parseIP(address)?.bytes ?? [])]);
  const start = from.includes(':') ? [0x60, 0, 0, 0, 0, 0, 6, 64] : [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0];
  return {
    network: Uint8Array.from([...start, ...(source ?? []), ...(destination ?? [])]),
    transport: Uint8Array.from(ports.flatMap((port) => [port >> 8, port & 0xff])),
  };
}

function step(table: string, chain: string, parts: Partial<TraceStep> = {}): TraceStep {
  return { id: 7, family: 'ip', table, chain, kind: 'rule', verdict: { kind: 'continue' }, ...parts };
}

const before = headers('192.0.2.1', '10.96.0.1', [40_000, 80]);
const after = headers('192.0.2.1', '10.244.0.6', [40_000, 8080]);
const way = [
  step(TRACER, 'output', { ruleHandle: 2n, ...before }),
  step(TRACER, 'output', { kind: 'policy', verdict: { kind: 'accept' } }),
  step('kube-proxy', 'nat-output', { ruleHandle: 90n, verdict: { kind: 'goto', chain: 'pick' }, ...before }),
  step('kube-proxy', 'pick'),
  step('kube-proxy', 'filter-output', { kind: 'policy', verdict: { kind: 'accept' }, ...after }),
];

test('a journey leaves out the tracing rule and the ends of chains', () => {
  assert.deepEqual(journeyOf(way, TRACER), {
    from: '192.0.2.1:40000',
    to: '10.244.0.6:8080',
    isDropped: false,
    steps: ['ip kube-proxy nat-output rule 90: goto pick', 'ip kube-proxy filter-output policy: accept'],
  });
});

test('a journey leaves out foreign packets and later packets of the connection', () => {
  const foreign = step('kube-proxy', 'nat-output', { id: 8, ruleHandle: 1n, verdict: { kind: 'drop' } });
  const later = step('kube-proxy', 'late', { ruleHandle: 3n, verdict: { kind: 'drop' } });
  const steps = [foreign, ...way, step(TRACER, 'output', { ruleHandle: 2n }), later];
  assert.deepEqual(journeyOf(steps, TRACER), journeyOf(way, TRACER));
});

test('a journey shows that an IPv6 packet was dropped', () => {
  const six = headers('fd00::1', 'fd00:96::1', [40_000, 443]);
  const drop = step('kube-proxy', 'refuse', { family: 'ip6', ruleHandle: 5n, verdict: { kind: 'drop' } });
  const journey = journeyOf([step(TRACER, 'output', { ruleHandle: 2n, ...six }), drop], TRACER);
  assert.deepEqual([journey.to, journey.isDropped], ['[fd00:96::1]:443', true]);
  assert.deepEqual(journey.steps, ['ip6 kube-proxy refuse rule 5: drop']);
});

test('no steps, or truncated headers, make an empty journey', () => {
  const nothing = { from: null, to: null, isDropped: false, steps: [] };
  assert.deepEqual(journeyOf([], TRACER), nothing);
  const short = { network: Uint8Array.of(0x45), transport: Uint8Array.of(0, 80, 0, 80) };
  assert.deepEqual(journeyOf([step(TRACER, 'output', { ruleHandle: 2n, ...short })], TRACER), nothing);
});
