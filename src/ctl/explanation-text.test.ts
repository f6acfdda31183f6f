import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fate, Obstacle } from '../backends/inspection.ts';
import { API_VERSION, type ExplanationReport } from '../inspect/api.ts';
import { isStopped } from '../inspect/explanation-words.ts';
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
    kernel: { fate: toTwo, evidence: ['map element a', 'rule b'], lookedAt: 'table ip kube-proxy' },
    kernelUnknown: null,
    differences: [],
    otherRules: { lookedAt: [], obstacles: [], notLookedAt: [] },
    otherRulesUnknown: null,
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
Looked at: table ip kube-proxy.

No other nf_tables chain is on the way
`,
  );
});

test('an explanation shows pods and zones of endpoints as far as they are known', () => {
  const placements = { '10.244.1.21:8080': { pod: 'shop/web-1' }, '10.244.2.21:8080': { pod: 'blog/x' } };
  const text = explanationText(report({ placements }), plain);
  assert.match(text, /^ {2}ENDPOINT +POD +CHANCE /m);
  assert.match(text, /^ {2}10\.244\.1\.21:8080 +web-1 +50/m);
  assert.match(text, /^ {2}10\.244\.2\.21:8080 +blog\/x +50/m);
});

test('an explanation warns when the kernel disagrees, and shows its answer', () => {
  const text = explanationText(
    report({
      kernel: { fate: { action: 'drop' }, evidence: ['rule c'], lookedAt: 'table ip kube-proxy' },
      differences: ['The plan is to forward the packet, the kernel is set to drop it.'],
    }),
    (style, words) => (style === 'red' ? words.toUpperCase() : words),
  );
  assert.match(text, /WARNING: THE KERNEL DISAGREES\n {2}! THE PLAN IS TO FORWARD/);
  assert.match(
    text,
    /The kernel says: Dropped: the sender gets no answer\.\n {2}rule c\nLooked at: table ip kube-proxy\.\n$/,
  );
});

test('an explanation says why the answer of the kernel is unknown', () => {
  const text = explanationText(report({ kernel: null, kernelUnknown: 'EPERM', otherRules: null }), plain);
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

test('the headline names the endpoint that a client is bound to, and for how long', () => {
  const bound = { endpoint: '10.244.2.21:8080', secondsLeft: 7_265 };
  const only: Fate = {
    action: 'forward',
    targets: [{ endpoint: bound.endpoint, probability: 1, masquerade: true }],
    affinitySeconds: 10_800,
  };
  const kernel = { fate: only, evidence: [], lookedAt: 'table ip kube-proxy', bound };
  const text = explanationText(report({ kernel }), plain);
  assert.match(
    text,
    /\nForwarded to 10\.244\.2\.21:8080 of shop\/web\/TCP: client affinity binds 10\.0\.0\.1 to it for another 2h1m\.\n/,
  );
  assert.match(text, /SEES AS SOURCE\n {2}10\.244\.2\.21:8080 {2}100\.0 % {2}an address of the node\n\n/);
  const differing = explanationText(report({ kernel, differences: ['Something differs.'] }), plain);
  assert.match(differing, /\nForwarded to one of 2 endpoints of shop\/web\/TCP, and/);
});

const forward = {
  table: 'inet filter',
  chain: 'forward',
  hook: 'forward',
  priority: 0,
  policy: 'drop',
} as const;
const prerouting = {
  ...forward,
  chain: 'raw',
  hook: 'prerouting',
  priority: -300,
  policy: 'accept',
} as const;

test('an explanation says at the top which chain of another program stops the packet', () => {
  const policy = { action: 'drop', chain: 'forward', handle: null, comment: null } as const;
  const stops: Obstacle = {
    ...forward,
    certainty: 'certain',
    causes: [policy],
    causeCount: 1,
    unclearRules: 0,
    endpoints: null,
  };
  const stopped = report({
    otherRules: { lookedAt: [prerouting, forward], obstacles: [stops], notLookedAt: [] },
  });
  assert.ok(isStopped(stopped));
  assert.match(
    explanationText(stopped, plain),
    /always the same one\.\nWARNING: ANOTHER PROGRAM STOPS IT: table inet filter, chain forward: policy drop\.\n/,
  );
  assert.match(
    explanationText(stopped, plain),
    /\n\nOther nf_tables chains on the way\n {2}table inet filter, chain raw \(hook prerouting, priority -300, policy accept\): lets it pass\n {2}table inet filter, chain forward \(hook forward, priority 0, policy drop\): STOPS IT\n$/,
  );
});

test('an explanation names rules of other programs that may stop the packet, and what was not looked at', () => {
  const rule = { action: 'reject', chain: 'blocked', handle: 7, comment: 'by order' } as const;
  const unknown = { action: 'unknown', chain: 'forward', handle: 9, comment: null } as const;
  const may: Obstacle = {
    ...forward,
    certainty: 'possible',
    causes: [rule, unknown],
    causeCount: 3,
    unclearRules: 2,
    endpoints: ['10.244.1.21:8080'],
  };
  const notLookedAt = ['other rules of legacy iptables (tables filter)'];
  const unsure = report({ otherRules: { lookedAt: [forward], obstacles: [may], notLookedAt } });
  assert.ok(!isStopped(unsure));
  const text = explanationText(unsure, plain);
  assert.match(
    text,
    /\nAnother program may stop it: table inet filter, chain forward: reject by the rule with handle 7 of chain blocked \("by order"\), or a statement that is not understood by the rule with handle 9 and 1 more; 2 rules could not be evaluated, on the way to 10\.244\.1\.21:8080\.\n/,
  );
  assert.match(
    text,
    /policy drop\): MAY STOP IT\nNot looked at: other rules of legacy iptables \(tables filter\)\.\n$/,
  );
});

test('an explanation says why rules of other programs were not looked at', () => {
  const text = explanationText(report({ otherRules: null, otherRulesUnknown: 'EPERM' }), plain);
  assert.match(text, /\nRules of other programs were not looked at: EPERM\n$/);
});

test('an explanation says when later packets skip the rules', () => {
  const kernel = { fate: toTwo, evidence: [], lookedAt: 'table ip kube-proxy', fastPathAfter: 20 };
  assert.match(
    explanationText(report({ kernel }), plain),
    /\nAfter 20 packets, the connection takes the fast path: later packets skip all rules, also those of other programs\.\n/,
  );
  assert.doesNotMatch(explanationText(report(), plain), /fast path/);
});
