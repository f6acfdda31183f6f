import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headers, marked, observer, step, TRACER } from '../../../test/trace/recorded-steps.ts';
import type { Fate } from '../../backends/inspection.ts';
import { iptablesMode } from '../../backends/iptables/mode.ts';
import { ipvsMode } from '../../backends/ipvs/mode.ts';
import type { Mode } from '../../backends/mode.ts';
import { nftablesMode } from '../../backends/nftables/mode.ts';
import { userspaceMode } from '../../backends/userspace/mode.ts';
import { liveDifferences, wayOf } from './live.ts';

const packet = {
  family: 'IPv4',
  protocol: 'TCP',
  source: '192.0.2.1',
  destination: '10.96.0.1',
  port: 80,
  origin: 'node',
} as const;

function differences(fate: Fate, to: string | null, isDropped = false, mode: Mode = nftablesMode) {
  const planned = { service: null, frontend: null, fate, reasons: [] };
  const journey = { from: null, to, isDropped, steps: ['ip kube-proxy nat-output rule 1: accept'] };
  return liveDifferences({ packet, planned }, journey, mode);
}

const forward: Fate = {
  action: 'forward',
  targets: [{ endpoint: '10.244.0.6:8080', probability: 1, masquerade: false }],
  affinitySeconds: 0,
};

test('a traced packet that went as decided has no differences', () => {
  assert.deepEqual(differences(forward, '10.244.0.6:8080'), []);
  assert.deepEqual(differences({ action: 'pass' }, '10.96.0.1:80'), []);
  assert.deepEqual(differences({ action: 'reject' }, '10.96.0.1:80', true), []);
});

test('a traced packet that went elsewhere, went on or was dropped has differences', () => {
  assert.deepEqual(differences(forward, '10.96.0.1:80'), [
    'The packet went to 10.96.0.1:80, not to 10.244.0.6:8080.',
  ]);
  assert.deepEqual(differences({ action: 'drop' }, '10.244.0.6:8080'), [
    'The proxy decided to drop the packet, but it went to 10.244.0.6:8080.',
  ]);
  assert.deepEqual(differences(forward, '10.244.0.6:8080', true), [
    'The proxy decided to let the packet pass, but it was dropped.',
  ]);
});

test('a way that the trace cannot show is not compared', () => {
  assert.equal(differences(forward, '127.0.0.1:4000', false, userspaceMode), null);
  assert.equal(differences(forward, '10.96.0.1:80', false, ipvsMode), null);
  assert.equal(differences(forward, null), null);
  const planned = { service: null, frontend: null, fate: forward, reasons: [] };
  const unseen = { from: 'a', to: '10.96.0.1:80', isDropped: false, steps: [] };
  assert.equal(liveDifferences({ packet, planned }, unseen, iptablesMode), null);
});

test('the way of a sent packet has its addresses and steps, without the chains of the trace', () => {
  const before = headers('fd00::1', 'fd00:96::1', [40_000, 443]);
  const drop = step('kube-proxy', 'refuse', {
    family: 'ip6',
    ruleHandle: 5n,
    verdict: { kind: 'drop' },
    ...before,
  });
  assert.deepEqual(wayOf([marked(before), observer('output-first', {}), drop], TRACER), {
    from: '[fd00::1]:40000',
    to: '[fd00:96::1]:443',
    isDropped: true,
    steps: ['ip6 kube-proxy refuse rule 5: drop'],
  });
  assert.deepEqual(wayOf([], TRACER), { from: null, to: null, isDropped: false, steps: [] });
});
