import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headers, marked, observer, step, TRACER } from '../../test/trace/recorded-steps.ts';
import { endingOf, endsOf, journeysOf, stepTexts } from './journey.ts';

const before = headers('10.244.0.9', '10.96.0.1', [40_000, 80]);
const after = headers('10.244.0.9', '10.244.0.6', [40_000, 8080]);
const drop = { verdict: { kind: 'drop' } } as const;

/** A packet that a service address led to an endpoint, up to the last chain of prerouting. */
const arrival = [
  marked({ ...before, inInterface: 3 }),
  observer('prerouting-first', {}),
  step('kube-proxy', 'nat-prerouting', {
    ruleHandle: 90n,
    verdict: { kind: 'goto', chain: 'pick' },
    ...before,
    inInterface: 3,
  }),
  step('kube-proxy', 'pick'),
  observer('prerouting-last', { ...after, inInterface: 3 }),
];
const forwarding = [observer('forward-first', { ...after, inInterface: 3, outInterface: 4 })];
const departure = [
  ...forwarding,
  observer('forward-last', { ...after, outInterface: 4 }),
  observer('postrouting-first', { ...after, outInterface: 4 }),
  observer('postrouting-last', { ...after, outInterface: 4 }),
];

function ending(...steps: Parameters<typeof journeysOf>[0][number][]) {
  return endingOf(journeysOf(steps, TRACER)[0] ?? []);
}

test('a journey has the first and the last addresses, and leaves out the chains of the trace', () => {
  const [journey = []] = journeysOf([...arrival, ...departure], TRACER);
  const { first, last } = endsOf(journey);
  assert.deepEqual([first?.destination, last?.destination, last?.port], ['10.96.0.1', '10.244.0.6', 8080]);
  assert.deepEqual(stepTexts(journey), ['ip kube-proxy nat-prerouting rule 90: goto pick']);
  assert.equal(journey.at(-1)?.outInterface, 4);
});

test('a journey leaves out the table that counts traffic', () => {
  const counting = step('kube-proxy-observer-77', 'prerouting', before);
  assert.deepEqual(journeysOf([arrival[0] ?? counting, counting, ...arrival.slice(1)], TRACER), [
    ...journeysOf(arrival, TRACER),
  ]);
});

test('a packet that passed the last chain of postrouting left, one at the last chain of input arrived', () => {
  assert.deepEqual(ending(...arrival, ...departure), { kind: 'left' });
  const input = [observer('input-first', after), observer('input-last', after)];
  assert.deepEqual(ending(...arrival, ...input), { kind: 'arrived' });
});

test('a packet is stopped by the step that dropped it', () => {
  const rule = step('firewall', 'forward', { ruleHandle: 12n, ...drop, ...after });
  const stopped = ending(...arrival, ...forwarding, rule);
  assert.deepEqual(stopped, { kind: 'stopped', hook: 'forward', step: rule });
});

test('a packet that disappears was lost inside of a hook or after it', () => {
  assert.deepEqual(ending(...arrival), { kind: 'lost', hook: 'prerouting', where: 'after' });
  assert.deepEqual(ending(...arrival, ...forwarding), { kind: 'lost', hook: 'forward', where: 'inside' });
  assert.deepEqual(ending(marked(before)), { kind: 'lost', hook: 'output', where: 'inside' });
});

test('packets that are traced at the same time, or by others, do not mix', () => {
  const other = [
    marked({ ...before, id: 8 }),
    step('firewall', 'output', { id: 8, ruleHandle: 1n, ...drop, ...before }),
  ];
  const foreign = step('kube-proxy', 'nat-output', { id: 9, ruleHandle: 1n, ...drop, ...before });
  const mixed = [foreign, ...arrival, ...other, ...departure];
  const journeys = journeysOf(mixed, TRACER);
  assert.deepEqual(
    journeys.map((journey) => endingOf(journey).kind),
    ['left', 'stopped'],
  );
});

test('a later packet with the same id is another journey', () => {
  const journeys = journeysOf([...arrival, ...departure, ...arrival], TRACER);
  assert.deepEqual(
    journeys.map((journey) => endingOf(journey).kind),
    ['left', 'lost'],
  );
});

test('a packet that comes back by the loopback interface goes on with another id', () => {
  const out = [
    marked(before),
    observer('output-last', after),
    observer('postrouting-last', { ...after, outInterface: 1 }),
  ];
  const back = [
    observer('prerouting-first', { id: 9, ...after, inInterface: 1 }),
    observer('input-last', { id: 9, ...after, inInterface: 1 }),
  ];
  assert.deepEqual(ending(...out, ...back), { kind: 'arrived' });
  const stranger = observer('input-last', { id: 9, ...before, inInterface: 1 });
  assert.deepEqual(ending(...out, stranger), { kind: 'left' });
});

test('no steps make no journey, and truncated headers no addresses', () => {
  assert.deepEqual(journeysOf([], TRACER), []);
  const short = { network: Uint8Array.of(0x45), transport: Uint8Array.of(0, 80, 0, 80) };
  assert.deepEqual(endsOf(journeysOf([marked(short)], TRACER)[0] ?? []), {
    first: undefined,
    last: undefined,
  });
});
