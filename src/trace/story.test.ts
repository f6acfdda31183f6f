import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headers, marked, observer, step, TRACER } from '../../test/trace/recorded-steps.ts';
import type { TraceStep } from '../kernel/nft/trace.ts';
import { journeysOf } from './journey.ts';
import { type Evidence, storyOf } from './story.ts';

const before = headers('10.244.1.5', '10.96.0.10', [40_000, 80]);
const after = headers('10.244.1.5', '10.244.2.7', [40_000, 8080]);
const masqueraded = headers('192.0.2.1', '10.244.2.7', [40_000, 8080]);
const arrival = [
  marked({ ...before, inInterface: 3 }),
  step('kube-proxy', 'nat-prerouting', { ruleHandle: 9n, verdict: { kind: 'accept' }, ...before }),
  observer('prerouting-last', { ...after, inInterface: 3 }),
];
const departure = [
  observer('forward-last', { ...after, inInterface: 3, outInterface: 4 }),
  observer('postrouting-last', { ...masqueraded, outInterface: 4 }),
];
const decision: NonNullable<Evidence['decision']> = {
  service: 'shop/web:http/TCP',
  fate: { action: 'forward', targets: [], affinitySeconds: 0 },
  reasons: [],
};
const evidence: Evidence = {
  interfaces: new Map([
    [3, 'veth3'],
    [4, 'veth4'],
  ]),
  isOurs: false,
  decision,
  answer: 'answered',
  causes: [],
};

function told(steps: readonly TraceStep[], more: Partial<Evidence> = {}) {
  const [journey] = journeysOf(steps, TRACER);
  assert.ok(journey);
  const story = storyOf(journey, { ...evidence, ...more });
  assert.ok(story);
  return story;
}

const way = '10.244.1.5:40000 → shop/web:http/TCP 10.96.0.10:80 → 10.244.2.7:8080';

function stoppedAt(parts: Partial<TraceStep>, table = 'firewall', chain = 'forward') {
  const stop = step(table, chain, { family: 'inet', verdict: { kind: 'drop' }, ...after, ...parts });
  return [...arrival, observer('forward-first', after), stop];
}

test('a delivered packet is told with its interfaces, endpoint and masqueraded source', () => {
  const story = told([...arrival, ...departure]);
  assert.equal(story.headline, `Delivered to 10.244.2.7:8080, which answered: ${way}`);
  const { entered, left, endpoint, masqueradedAs, protocol } = story;
  assert.deepEqual(
    [entered, left, endpoint, masqueradedAs, protocol],
    ['veth3', 'veth4', '10.244.2.7:8080', '192.0.2.1:40000', 'TCP'],
  );
  assert.deepEqual(story.passed, [
    { hook: 'prerouting', chains: ['ip kube-proxy nat-prerouting'] },
    { hook: 'forward', chains: [] },
    { hook: 'postrouting', chains: [] },
  ]);
});

test('what is known of the answer is in the headline', () => {
  const verdict = (answer: Evidence['answer']) => told([...arrival, ...departure], { answer }).verdict;
  assert.equal(verdict('unanswered'), 'No answer from 10.244.2.7:8080');
  assert.equal(verdict('refused'), 'Refused by 10.244.2.7:8080');
  assert.equal(verdict('incomplete'), 'Answered by 10.244.2.7:8080, but the handshake was not completed');
  assert.equal(verdict('unknown'), 'Delivered to 10.244.2.7:8080');
});

test('a program that a chain belongs to by its name is named', () => {
  const story = told(stoppedAt({ ruleHandle: 12n }, 'filter', 'KUBE-FIREWALL'), {
    rule: { comment: null, isReject: false },
    owner: 'the kubelet',
  });
  const place = 'table inet filter, chain KUBE-FIREWALL, rule handle 12';
  assert.equal(story.verdict, `Dropped by the kubelet (${place})`);
});

test('a rule of another program is named by table, chain, handle and comment', () => {
  const rule = { comment: 'no pods', isReject: false };
  assert.equal(
    told(stoppedAt({ ruleHandle: 12n }), { rule }).headline,
    `Dropped by table inet firewall, chain forward, rule handle 12 ("no pods"): ${way}`,
  );
  const rejected = told(stoppedAt({ ruleHandle: 12n }), { rule: { comment: null, isReject: true } });
  assert.equal(rejected.verdict, 'Rejected by table inet firewall, chain forward, rule handle 12');
  assert.equal(rejected.outcome, 'rejected');
});

test('the policy of a chain is named as such', () => {
  assert.equal(
    told(stoppedAt({ kind: 'policy' })).verdict,
    'Dropped by table inet firewall, chain forward, policy drop',
  );
});

test('a drop by kube-proxy has the reason that decided', () => {
  const reasons = ['The packet is for shop/web.', 'Source 10.244.1.5 is in no range.', 'Dropped: no answer.'];
  const refused = { ...decision, fate: { action: 'drop' }, reasons } as const;
  const steps = stoppedAt({ family: 'ip', ruleHandle: 5n }, 'kube-proxy', 'refuse');
  const story = told(steps, { isOurs: true, decision: refused });
  assert.equal(
    story.verdict,
    'Dropped by kube-proxy: Source 10.244.1.5 is in no range (table ip kube-proxy, chain refuse, rule handle 5)',
  );
  assert.deepEqual(story.reasons, reasons);
  assert.match(told(steps, { isOurs: true }).reasons.join(), /decided to let the packet pass/);
});

test('a packet that disappears is lost, with the likeliest cause in the headline', () => {
  const story = told(arrival, { causes: ['the reverse path filter', 'a missing route'] });
  assert.equal(
    story.headline,
    `Lost between prerouting and forward or input, where the route is looked up, probably by the reverse path filter: ${way}`,
  );
  assert.match(story.reasons.join(' '), /Other possible causes: a missing route\./);
  assert.equal(told([...arrival, observer('forward-first', after)]).verdict, 'Lost at hook forward');
});

test('names and comments of other programs have no control characters in a story', () => {
  const rule = { comment: '\u001b[2J\u009b\u202e\n', isReject: false };
  const story = told(stoppedAt({ ruleHandle: 1n }, 'fire\u001bwall', 'for\u0007ward'), { rule });
  const texts = JSON.stringify(story, (_key, value: unknown) => value);
  assert.doesNotMatch(texts, /[\p{Cc}\p{Cf}]|\\u00/u);
  assert.match(
    story.verdict,
    /table inet fire\\u\{1b\}wall, chain for\\u\{7\}ward, .*\("\\u\{1b\}\[2J\\u\{9b\}\\u\{202e\}\\u\{a\}"\)/,
  );
});
