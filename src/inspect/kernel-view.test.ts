import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { inspection } from '../../test/inspected-proxy.ts';
import type { KernelAnswer, Packet } from '../backends/inspection.ts';
import { KernelView } from './kernel-view.ts';

function harness(closing: () => void = () => {}) {
  const clock = new FakeClock();
  const log: string[] = [];
  const view = new KernelView({
    open: async () => {
      log.push('open');
      return inspection({
        close: async () => {
          log.push('close');
          closing();
        },
      });
    },
    clock,
  });
  return { clock, log, view };
}

test('a kernel view opens with the first question and closes after a minute without one', async () => {
  const { clock, log, view } = harness();
  assert.equal(log.length, 0);
  await view.ask(async () => log.push('first'));
  await clock.advance(59_000);
  await view.ask(async () => log.push('second'));
  await clock.advance(59_000);
  assert.deepEqual(log, ['open', 'first', 'second']);
  await clock.advance(1_000);
  assert.deepEqual(log.slice(3), ['close']);
  await view.ask(async () => log.push('third'));
  assert.deepEqual(log.slice(4), ['open', 'third']);
});

test('a kernel view answers one question at a time, in their order', async () => {
  const { log, view } = harness();
  const first = Promise.withResolvers<void>();
  const asked = view.ask(() => first.promise.then(() => log.push('first')));
  const next = view.ask(async () => log.push('second'));
  await Promise.resolve();
  first.resolve();
  await Promise.all([asked, next]);
  assert.deepEqual(log, ['open', 'first', 'second']);
});

test('a failed question closes the inspection, and the next one is answered', async () => {
  const { log, view } = harness();
  await assert.rejects(
    view.ask(async () => {
      throw new Error('EPERM');
    }),
    /EPERM/,
  );
  await view.ask(async () => log.push('next'));
  assert.deepEqual(log, ['open', 'close', 'open', 'next']);
});

test('an inspection that cannot be closed does not disturb the next question', async () => {
  const { clock, log, view } = harness(() => {
    throw new Error('EBADF');
  });
  await assert.rejects(
    view.ask(async () => {
      throw new Error('EPERM');
    }),
    /EPERM/,
  );
  await view.ask(async () => log.push('next'));
  await clock.advance(60_000);
  await view.ask(async () => log.push('later'));
  assert.deepEqual(log, ['open', 'close', 'open', 'next', 'close', 'open', 'later']);
});

test('a failure to open the inspection rejects the question', async () => {
  const view = new KernelView({
    open: async () => {
      throw new Error('no socket');
    },
    clock: new FakeClock(),
  });
  await assert.rejects(
    view.ask(async () => {}),
    /no socket/,
  );
});

test('a kernel view rejects a question when too many wait, until some are answered', async () => {
  const { view } = harness();
  const answer = Promise.withResolvers<void>();
  const waiting = Array.from({ length: 16 }, () => view.ask(() => answer.promise));
  await assert.rejects(
    view.ask(async () => {}),
    /16 questions about the kernel are already waiting/,
  );
  answer.resolve();
  await Promise.all(waiting);
  await view.ask(async () => {});
});

test('packets that wait together share a turn, even when one of them fails', async () => {
  const turns: string[][] = [];
  const asked: string[] = [];
  const view = new KernelView({
    open: async () => {
      turns.push([]);
      return inspection({
        ask: async ({ source }) => {
          turns.at(-1)?.push(source);
          await Promise.resolve();
          if (source === '10.0.0.2') throw new Error('a rule that nobody understands');
          asked.push(source);
          return answer;
        },
      });
    },
    clock: new FakeClock(),
  });
  const first = Promise.allSettled(['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((ip) => view.fateOf(from(ip))));
  assert.deepEqual(
    (await first).map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.equal(await view.fateOf(from('10.0.0.4')), answer);
  assert.deepEqual(turns, [['10.0.0.1', '10.0.0.2', '10.0.0.3'], ['10.0.0.4']]);
  assert.deepEqual(asked, ['10.0.0.1', '10.0.0.3', '10.0.0.4']);
});

test('a failure to open the inspection rejects every packet that waited', async () => {
  let tries = 0;
  const open = async () => {
    if (++tries === 1) throw new Error('EPERM');
    return inspection({ ask: async () => answer });
  };
  const view = new KernelView({ open, clock: new FakeClock() });
  const both = await Promise.allSettled([view.fateOf(from('10.0.0.1')), view.fateOf(from('10.0.0.2'))]);
  assert.deepEqual(
    both.map((each) => each.status === 'rejected' && String(each.reason)),
    ['Error: EPERM', 'Error: EPERM'],
  );
  assert.equal(await view.fateOf(from('10.0.0.3')), answer);
});

test('a kernel view rejects packets when too many wait', async () => {
  const { view } = harness();
  const fates = Array.from({ length: 17 }, () => view.fateOf(from('10.0.0.1')));
  const refused = (await Promise.allSettled(fates)).filter(
    (fate) => fate.status === 'rejected' && /16 questions/.test(String(fate.reason)),
  );
  assert.equal(refused.length, 1);
});

const answer: KernelAnswer = { fate: { action: 'pass' }, evidence: [], lookedAt: 'nothing' };

function from(source: string): Packet {
  return { family: 'IPv4', source, destination: '10.96.0.1', protocol: 'TCP', port: 80, origin: 'node' };
}
