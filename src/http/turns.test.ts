import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { Line, Turns, type Worker } from './turns.ts';

/** A clock that the work itself moves, too. */
class WorkClock extends FakeClock {
  #worked = 0;

  work(ms: number): void {
    this.#worked += ms;
  }

  override monotonic(): number {
    return super.monotonic() + this.#worked;
  }
}

function setup() {
  const clock = new WorkClock();
  const done: string[] = [];
  const worker = (name: string, ms: number): Worker => ({
    work: () => {
      clock.work(ms);
      done.push(name);
    },
    destroy: () => assert.fail(),
  });
  return { clock, turns: new Turns(clock), done, worker };
}

test('requests are served at once until HTTP has used its share of time, then in pieces', async () => {
  const { clock, turns, done, worker } = setup();
  const line = new Line();
  for (let i = 0; i < 100; i++) turns.take(worker('a', 1), line, 'prompt');
  const atOnce = done.length;
  assert.ok(atOnce >= 1 && atOnce < 10, `${atOnce} were served in one turn`);
  const begun = clock.monotonic();
  for (let waited = 0; waited < 10_000 && done.length < 100; waited += 10) await clock.advance(10);
  const elapsed = clock.monotonic() - begun;
  assert.equal(done.length, 100);
  assert.ok(elapsed > 200, `100 ms of work were done within ${elapsed} ms`);
  await clock.advance(100);
  assert.equal(clock.pending, 0);
});

test('a client that asks one question does not wait for those that sent many, nor for other ports', async () => {
  const { clock, turns, done, worker } = setup();
  const [metrics, health] = [new Line(), new Line()];
  turns.charge(100);
  for (let i = 0; i < 50; i++) turns.take(worker('scrape', 5), metrics, 'prompt');
  for (let i = 0; i < 50; i++) turns.take(worker('flood', 1), health, 'pipelined');
  turns.take(worker('polite', 1), health, 'prompt');
  for (let waited = 0; waited < 10_000 && !done.includes('polite'); waited += 10) await clock.advance(10);
  assert.ok(done.includes('polite'));
  assert.ok(done.indexOf('polite') < 5, `after ${done.indexOf('polite')} others`);
});

test('a client on this machine waits for at most two others, however many connect', async () => {
  const { clock, turns, done, worker } = setup();
  const line = new Line();
  turns.charge(100);
  for (let i = 0; i < 250; i++) turns.take(worker('elsewhere', 1), line, 'prompt');
  for (let i = 0; i < 250; i++) turns.take(worker('flood', 1), line, 'pipelined');
  while (done.length < 100) await clock.advance(10);
  const before = done.length;
  turns.take(worker('kubelet', 1), line, 'local');
  while (!done.includes('kubelet')) await clock.advance(10);
  assert.ok(done.indexOf('kubelet') <= before + 2, `after ${done.indexOf('kubelet') - before} others`);
});

test('of many clients on this machine, none keeps those elsewhere waiting for more than two others', async () => {
  const { clock, turns, done, worker } = setup();
  const line = new Line();
  turns.charge(100);
  for (let i = 0; i < 100; i++) turns.take(worker('local', 1), line, 'local');
  for (let i = 0; i < 20; i++) turns.take(worker('elsewhere', 1), line, 'prompt');
  while (done.length < 30) await clock.advance(10);
  assert.doesNotMatch(done.join(' '), /local local local/);
});

test('a connection that is closed leaves its line', async () => {
  const { clock, turns, done, worker } = setup();
  const line = new Line();
  turns.charge(100);
  const gone = worker('gone', 1);
  turns.take(gone, line, 'prompt');
  turns.take(worker('left', 1), line, 'prompt');
  line.leave(gone);
  await clock.advance(1000);
  assert.deepEqual(done, ['left']);
});
