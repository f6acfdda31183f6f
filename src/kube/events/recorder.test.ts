import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { type Logger, silentLogger } from '../../obs/log.ts';
import type { EventAnswer, EventRequest } from './delivery.ts';
import type { EventBody, EventInput, EventSeries } from './event.ts';
import { EventRecorder } from './recorder.ts';

const minute = 60_000;
const start = Date.UTC(2026, 0, 1);

const about = (name: string): EventInput => ({
  regarding: { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name },
  type: 'Warning',
  reason: 'FailedToStartServiceHealthcheck',
  action: 'Listen',
  note: 'port taken',
});

/** A recorder whose API server is `api.answer`; `calls` is what it was asked, in short. */
function setUp() {
  const clock = new FakeClock(start);
  const requests: EventRequest[] = [];
  const calls: string[] = [];
  const logged: string[] = [];
  const api: { answer: (request: EventRequest) => number | Promise<EventAnswer> } = { answer: () => 201 };
  const logger: Logger = {
    ...silentLogger,
    info: (message, attributes) => logged.push(`${message} ${JSON.stringify(attributes)}`),
    error: (error, message) => logged.push(`${message}: ${error}`),
  };
  const recorder = new EventRecorder({
    clock,
    logger,
    hostName: 'vm',
    random: () => 0.5,
    send: async (request) => {
      requests.push(request);
      calls.push(summaryOf(request));
      const answer = api.answer(request);
      return typeof answer === 'number' ? { status: answer } : answer;
    },
  });
  return { clock, requests, calls, logged, api, recorder };
}

function summaryOf({ method, body }: EventRequest): string {
  const { regarding, series } = body as Partial<EventBody> & { series?: EventSeries };
  return `${method}${regarding ? ` ${regarding.name}` : ''}${series ? ` x${series.count}` : ''}`;
}

test('events recorded before attach() are sent after it', async () => {
  const { clock, calls, recorder } = setUp();
  recorder.event(about('a'));
  recorder.event(about('b'));
  await clock.advance(2 * minute);
  assert.equal(calls.length, 0);
  recorder.attach();
  await clock.advance(0);
  assert.deepEqual(calls, ['POST a', 'POST b']);
  recorder.event(about('c'));
  await clock.advance(0);
  assert.deepEqual(calls, ['POST a', 'POST b', 'POST c']);
});

test('an event goes to the namespace of its object, under a name of its own', async () => {
  const { clock, requests, recorder } = setUp();
  recorder.attach();
  recorder.event(about('a'));
  recorder.event({ ...about('a'), reason: 'Other' });
  await clock.advance(0);
  const names = requests.map(({ body }) => (body as EventBody).metadata.name);
  assert.equal(names[0], `a.${(BigInt(start) * 1_000_000n + 500_000n).toString(16)}`);
  assert.equal(new Set(names).size, 2);
  assert.deepEqual(
    requests.map(({ method, path, contentType }) => `${method} ${path} ${contentType}`),
    Array(2).fill('POST /apis/events.k8s.io/v1/namespaces/shop/events application/json'),
  );
});

test('the second occurrence patches the series, later ones are counted', async () => {
  const { clock, requests, calls, recorder } = setUp();
  recorder.attach();
  recorder.event(about('a'));
  await clock.advance(minute);
  recorder.event({ ...about('a'), note: 'another note' });
  await clock.advance(minute);
  recorder.event(about('a'));
  recorder.event(about('a'));
  await clock.advance(minute);
  assert.deepEqual(calls, ['POST a', 'PATCH x2']);
  const [posted, patched] = requests;
  assert.ok(posted);
  const { name } = (posted.body as EventBody).metadata;
  assert.deepEqual(patched, {
    method: 'PATCH',
    path: `/apis/events.k8s.io/v1/namespaces/shop/events/${name}`,
    body: { series: { count: 2, lastObservedTime: '2026-01-01T00:01:00.000500Z' } },
    contentType: 'application/strategic-merge-patch+json',
  });
});

test('a series is flushed every 30 minutes while it lives, and 6 minutes after its end', async () => {
  const { clock, calls, recorder } = setUp();
  recorder.attach();
  recorder.event(about('a'));
  for (let i = 0; i < 12; i++) {
    await clock.advance(5 * minute);
    recorder.event(about('a'));
  }
  // POST at 0, PATCH at 5, then at 35 (the event of that minute comes just after); the last event is at 60.
  assert.deepEqual(calls, ['POST a', 'PATCH x2', 'PATCH x7']);
  await clock.advance(5 * minute + 59_999);
  assert.equal(calls.length, 4, 'the flush due at 65');
  assert.equal(calls[3], 'PATCH x13');
  recorder.event(about('a'));
  await clock.advance(6 * minute - 1);
  assert.equal(calls.length, 4);
  await clock.advance(1);
  assert.deepEqual(calls.slice(4), ['PATCH x14']);
  recorder.event(about('a'));
  await clock.advance(0);
  assert.deepEqual(calls.slice(5), ['POST a'], 'the series is over; a new event begins');
});

test('an event that happened once is forgotten after 6 minutes', async () => {
  const { clock, calls, recorder } = setUp();
  recorder.attach();
  recorder.event(about('a'));
  await clock.advance(6 * minute);
  assert.equal(clock.pending, 0, 'nothing left to look after');
  recorder.event(about('a'));
  await clock.advance(0);
  assert.deepEqual(calls, ['POST a', 'POST a']);
});

test('repetitions before attach() become one event and one series', async () => {
  const { clock, calls, recorder } = setUp();
  for (let i = 0; i < 5; i++) recorder.event(about('a'));
  recorder.attach();
  await clock.advance(0);
  assert.deepEqual(calls, ['POST a', 'PATCH x5']);
});

test('a series whose event has expired is created again with its count', async () => {
  const { clock, calls, logged, api, recorder } = setUp();
  recorder.attach();
  recorder.event(about('a'));
  await clock.advance(minute);
  api.answer = ({ method }) => (method === 'PATCH' ? 404 : 201);
  recorder.event(about('a'));
  await clock.advance(0);
  assert.deepEqual(calls, ['POST a', 'PATCH x2', 'POST a x2']);
  assert.deepEqual(logged, []);
});

test('a request without an answer is repeated every 10 to 12.5 seconds, 12 tries in all', async () => {
  const { clock, calls, logged, api, recorder } = setUp();
  api.answer = () => Promise.reject(new Error('connection refused'));
  recorder.attach();
  recorder.event(about('a'));
  recorder.event(about('b'));
  await clock.advance(11_249);
  assert.equal(calls.length, 1);
  await clock.advance(1);
  assert.equal(calls.length, 2, 'after 10 s and half of the jitter');
  await clock.advance(9 * 11_250);
  assert.equal(calls.length, 11);
  assert.deepEqual(logged, []);
  api.answer = ({ body }) =>
    (body as EventBody).regarding.name === 'a' ? Promise.reject(new Error('cut')) : 201;
  await clock.advance(11_250);
  assert.deepEqual(calls, [...Array(12).fill('POST a'), 'POST b']);
  assert.deepEqual(logged, ['Gave up sending an event: Error: cut']);
});

test('an answer ends the tries; a conflict after a lost answer means that the event exists', async () => {
  const { clock, calls, logged, api, recorder } = setUp();
  api.answer = () => Promise.reject(new Error('cut'));
  recorder.attach();
  recorder.event(about('a'));
  await clock.advance(1_000);
  api.answer = () => 409;
  await clock.advance(minute);
  assert.deepEqual(calls, ['POST a', 'POST a']);
  api.answer = () => 200;
  recorder.event(about('a'));
  await clock.advance(0);
  assert.equal(calls[2], 'PATCH x2');
  assert.deepEqual(logged, []);
});

test('a refusal is not retried, and its message is logged', async () => {
  const { clock, calls, logged, api, recorder } = setUp();
  api.answer = async () => ({ status: 403, message: 'events is forbidden' });
  recorder.attach();
  recorder.event(about('a'));
  await clock.advance(5 * minute);
  assert.deepEqual(calls, ['POST a']);
  assert.deepEqual(logged, ['The API server refused an event: Error: events is forbidden']);
  recorder.event(about('a'));
  await clock.advance(0);
  assert.equal(calls[1], 'POST a', 'there is no event to patch');
});

test('a send function that throws at once does no harm', async () => {
  const { clock, calls, api, recorder } = setUp();
  recorder.attach();
  api.answer = () => {
    throw new Error('broken');
  };
  recorder.event(about('a'));
  await clock.advance(0);
  api.answer = () => 201;
  await clock.advance(minute);
  assert.deepEqual(calls, ['POST a', 'POST a']);
});

test('memory is bounded: the first thousand are kept, the rest is counted', async () => {
  const { clock, calls, logged, recorder } = setUp();
  for (let i = 0; i < 1_500; i++) recorder.event(about(`s${i}`));
  recorder.attach();
  await clock.advance(0);
  assert.equal(calls.length, 1_000);
  assert.equal(calls[999], 'POST s999');
  assert.equal(logged.length, 2);
  assert.match(logged[0] ?? '', /^Dropping events/);
  assert.equal(logged[1], 'Events were dropped {"count":500}');
  recorder.event(about('new'));
  await clock.advance(0);
  assert.equal(calls[1_000], 'POST new', 'there is room again: what the server knows can be forgotten');
  recorder.event(about('s0'));
  await clock.advance(0);
  assert.equal(calls[1_001], 'POST s0', 'the oldest was forgotten');
  recorder.event(about('s999'));
  await clock.advance(0);
  assert.equal(calls[1_002], 'PATCH x2');
});

test('flush sends waiting events and counts, also before attach()', async () => {
  const { clock, calls, recorder } = setUp();
  recorder.event(about('a'));
  await recorder.flush(1_000);
  assert.deepEqual(calls, ['POST a']);
  for (let i = 0; i < 3; i++) {
    recorder.event(about('a'));
    await clock.advance(0);
  }
  assert.deepEqual(calls, ['POST a', 'PATCH x2']);
  await recorder.flush(1_000);
  assert.deepEqual(calls, ['POST a', 'PATCH x2', 'PATCH x4']);
  await recorder.flush(1_000);
  assert.equal(calls.length, 3);
});

test('flush also sends occurrences counted while a count is being sent', async () => {
  const { clock, calls, api, recorder } = setUp();
  recorder.attach();
  recorder.event(about('a'));
  await clock.advance(0);
  const patch = Promise.withResolvers<EventAnswer>();
  api.answer = () => patch.promise;
  recorder.event(about('a'));
  recorder.event(about('a'));
  const flushed = recorder.flush(1_000);
  recorder.event(about('a'));
  patch.resolve({ status: 200 });
  await flushed;
  assert.deepEqual(calls, ['POST a', 'PATCH x2', 'PATCH x4']);
});

test('flush repeats a waiting request at once and gives up at the deadline', async () => {
  const { clock, calls, api, recorder } = setUp();
  api.answer = () => Promise.reject(new Error('cut'));
  recorder.attach();
  recorder.event(about('a'));
  await clock.advance(1_000);
  const outcome: string[] = [];
  void recorder.flush(2_000).then(() => outcome.push('flushed'));
  await clock.advance(1_999);
  assert.equal(calls.length, 2);
  assert.equal(outcome.length, 0);
  await clock.advance(1);
  assert.deepEqual(outcome, ['flushed']);
});

test('close stops everything: tries, timers, flushes, later events', async () => {
  const { clock, calls, logged, api, recorder } = setUp();
  api.answer = () => Promise.reject(new Error('cut'));
  recorder.attach();
  recorder.event(about('a'));
  recorder.event(about('b'));
  await clock.advance(1_000);
  const flushed = recorder.flush(3_600_000);
  recorder.close();
  await flushed;
  recorder.event(about('c'));
  recorder.attach();
  await clock.advance(60 * minute);
  assert.deepEqual(calls, ['POST a']);
  assert.equal(clock.pending, 0);
  assert.deepEqual(logged, []);
});
