import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fate } from '../backends/inspection.ts';
import { API_VERSION, type ExplanationReport } from '../inspect/api.ts';
import { explanationText } from './explanation-text.ts';
import type { Paint } from './terminal.ts';

const plain: Paint = (_style, text) => text;
const toTwo: Fate = {
  action: 'forward',
  targets: [
    { endpoint: '10.244.1.21:8080', probability: 0.5, masquerade: false },
    { endpoint: '10.244.2.21:8080', probability: 0.5, masquerade: true },
  ],
  affinitySeconds: 10_800,
};

function report(parts: Partial<ExplanationReport> = {}): ExplanationReport {
  return {
    apiVersion: API_VERSION,
    kind: 'Explanation',
    mode: 'nftables',
    nodeName: 'n1',
    packet: {
      family: 'IPv4',
      protocol: 'TCP',
      source: '10.0.0.1',
      destination: '10.96.0.1',
      port: 80,
      origin: { interface: 'eth0' },
    },
    planned: {
      service: 'shop/web/TCP',
      frontend: 'cluster IP',
      fate: toTwo,
      reasons: ['First this.', 'Then that.'],
    },
    kernel: { fate: toTwo, evidence: ['map element a', 'rule b'] },
    kernelUnknown: null,
    differences: [],
    ...parts,
  };
}

test('an explanation shows the decision, its reasons, the chances of endpoints and that the kernel agrees', () => {
  assert.equal(
    explanationText(report(), plain),
    `TCP from 10.0.0.1 to 10.96.0.1:80, arriving on eth0; node n1, nftables mode
Forwarded to one of 2 endpoints of shop/web/TCP, and for 3h always the same one.

Why
  1. First this.
  2. Then that.

  ENDPOINT          CHANCE  SEES AS SOURCE
  10.244.1.21:8080  50.0 %  the address of the client
  10.244.2.21:8080  50.0 %  an address of the node

The kernel agrees
  map element a
  rule b
`,
  );
});

test('an explanation warns when the kernel disagrees, and shows its answer', () => {
  const text = explanationText(
    report({
      kernel: { fate: { action: 'drop' }, evidence: ['rule c'] },
      differences: ['The plan is to forward the packet, the kernel is set to drop it.'],
    }),
    (style, words) => (style === 'red' ? words.toUpperCase() : words),
  );
  assert.match(text, /WARNING: THE KERNEL DISAGREES\n {2}! THE PLAN IS TO FORWARD/);
  assert.match(text, /The kernel says: Dropped: the sender gets no answer\.\n {2}rule c\n$/);
});

test('an explanation says why the answer of the kernel is unknown', () => {
  const text = explanationText(report({ kernel: null, kernelUnknown: 'EPERM' }), plain);
  assert.match(text, /\nThe answer of the kernel is unknown: EPERM\n$/);
});

test('an explanation names packets of the node itself, unknown interfaces and every fate', () => {
  const { packet, planned } = report();
  const text = (origin: 'node' | { interface: string }, fate: Fate) =>
    explanationText(report({ packet: { ...packet, origin }, planned: { ...planned, fate } }), plain);
  assert.match(
    text('node', { action: 'reject' }),
    /sent by the node itself.*\nRejected: the sender gets an error at once\.\n/,
  );
  assert.match(text({ interface: '' }, { action: 'pass' }), /unknown interface.*\nIgnored: /);
});
