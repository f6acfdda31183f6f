import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { headers, marked, observer, TRACER } from '../../test/trace/recorded-steps.ts';
import type { ConntrackClient } from '../kernel/ct/client.ts';
import type { Flow } from '../kernel/ct/flow.ts';
import { toIP } from '../model/ip.ts';
import { Answers, answerOf } from './answers.ts';
import { type Journey, journeysOf } from './journey.ts';

const SEEN_REPLY = 0x2;
const ASSURED = 0x4;
const [SYN_SENT, SYN_RECV, ESTABLISHED, CLOSE] = [1, 2, 3, 8];

function flow(status: number, tcpState = 0): Flow {
  const tuple = {
    source: toIP('10.244.0.9').bytes,
    destination: toIP('10.96.0.1').bytes,
    sourcePort: 40_000,
    destinationPort: 80,
  };
  return {
    family: 'IPv4',
    protocol: 6,
    original: tuple,
    reply: tuple,
    status,
    tcpState,
    timeout: 0,
    mark: 0,
    zone: 0,
    id: 1,
  };
}

/** A delivered packet from 10.244.0.9:40000 to 10.96.0.1:80. */
function delivered(to = '10.244.0.6'): Journey {
  const [before, after] = ['10.96.0.1', to].map((address) => headers('10.244.0.9', address, [40_000, 80]));
  const steps = [
    marked({ ...before, inInterface: 3 }),
    observer('postrouting-last', { ...after, outInterface: 4 }),
  ];
  const [journey] = journeysOf(steps, TRACER);
  assert.ok(journey);
  return journey;
}

/** A connection table that has these entries, one after the other; the last one stays. */
function table(...entries: (Flow | undefined)[]): Pick<ConntrackClient, 'forEachFlow'> {
  let looks = 0;
  return {
    async forEachFlow(_filter, visitor) {
      const entry = entries[Math.min(looks++, entries.length - 1)];
      if (entry) visitor.flow(entry);
    },
  };
}

test('the state of a flow tells what came back', () => {
  assert.equal(answerOf(flow(0, SYN_SENT)), 'unanswered');
  assert.equal(answerOf(flow(SEEN_REPLY, SYN_RECV)), 'incomplete');
  assert.equal(answerOf(flow(SEEN_REPLY | ASSURED, ESTABLISHED)), 'answered');
  assert.equal(answerOf(flow(SEEN_REPLY, CLOSE)), 'refused');
  assert.equal(answerOf(flow(SEEN_REPLY | ASSURED, CLOSE)), 'answered');
  assert.equal(answerOf(flow(SEEN_REPLY)), 'answered');
});

test('a look finds the answer of a delivered packet', async () => {
  const answers = new Answers(table(flow(SEEN_REPLY | ASSURED, ESTABLISHED)));
  await answers.look([delivered()]);
  assert.equal(answers.of(delivered()), 'answered');
});

test('an entry that is gone means that the connection was reset', async () => {
  const answers = new Answers(table(flow(0, SYN_SENT), undefined));
  await answers.look([delivered('10.96.0.1')]);
  assert.equal(answers.of(delivered('10.96.0.1')), 'unanswered');
  await answers.look([delivered('10.96.0.1')]);
  assert.equal(answers.of(delivered('10.96.0.1')), 'refused');
});

test('without an entry, a translated connection was reset, and of another one nothing is known', async () => {
  const answers = new Answers(table(undefined));
  await answers.look([delivered()]);
  assert.equal(answers.of(delivered()), 'refused');
  assert.equal(answers.of(delivered('10.96.0.1')), 'unknown');
});

test('a connection table that cannot be read tells nothing', async () => {
  const broken = { forEachFlow: () => Promise.reject(new Error('EPERM')) };
  const answers = new Answers(broken);
  await answers.look([delivered('10.96.0.1')]);
  assert.equal(answers.of(delivered('10.96.0.1')), 'unknown');
});

test('waiting ends with the answer', async () => {
  const answers = new Answers(table(flow(SEEN_REPLY | ASSURED, ESTABLISHED)));
  await answers.wait([delivered()], new FakeClock(), 2_000);
  assert.equal(answers.of(delivered()), 'answered');
});
