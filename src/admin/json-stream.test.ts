import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../test/eventually.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { serveHttp } from '../../test/serve-http.ts';
import type { HttpResponse } from '../http/response.ts';
import { systemClock } from '../lib/clock.ts';
import { LineStream, sendBatches } from './json-stream.ts';

async function answerOf(t: TestContext, handle: (response: HttpResponse) => void): Promise<IncomingMessage> {
  const { port } = await serveHttp(t, (_request, response) => handle(response));
  const request = get({ host: '127.0.0.1', port, agent: false });
  request.on('error', () => {});
  t.after(() => request.destroy());
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return response;
}

test('batches are sent as the items of one object', async (t) => {
  const response = await answerOf(t, (to) => {
    void sendBatches(to, { kind: 'FlowList' }, async (send) => {
      await send([{ n: 1 }, { n: 2 }]);
      await send([]);
      await send(Array.from({ length: 20_000 }, (_, i) => ({ n: i + 3 })));
    });
  });
  const { kind, items } = JSON.parse(await text(response)) as { kind: string; items: { n: number }[] };
  assert.equal(kind, 'FlowList');
  assert.deepEqual([items.length, items[0], items.at(-1)], [20_002, { n: 1 }, { n: 20_002 }]);
});

test('an answer that fails on the way is cut off', async (t) => {
  const response = await answerOf(t, (to) => {
    void sendBatches(to, {}, async (send) => {
      await send(Array.from({ length: 20_000 }, (_, i) => ({ n: i })));
      throw new Error('the kernel does not answer');
    });
  });
  await assert.rejects(text(response));
});

test('an answer that fails before anything was sent can still be an error', async (t) => {
  const response = await answerOf(t, (to) => {
    const failing = sendBatches(to, {}, async () => {
      throw new Error('the kernel does not answer');
    });
    failing.catch((error: Error) => to.writeHead(503, {}).end(error.message));
  });
  assert.deepEqual([response.statusCode, await text(response)], [503, 'the kernel does not answer']);
});

test('a reader of lines that is too slow misses some, and is told how many', async (t) => {
  const sent = 60_000;
  const line = { text: 'x'.repeat(200) };
  let longest = 0;
  const response = await answerOf(t, (to) => {
    const lines = new LineStream(to, (count) => ({ lost: count }), systemClock);
    for (let i = 0; i < sent; i++) {
      lines.write(line);
      longest = Math.max(longest, to.writableLength);
    }
  });
  assert.ok(longest < 6 << 20, `${longest} bytes waited`);
  let received = '';
  response.on('data', (data) => {
    received += data;
  });
  await eventually('the reader is told of lost lines', () => received.includes('"lost"'));
  const all = received.trim().split('\n');
  const { lost } = JSON.parse(all.at(-1) ?? '') as { lost: number };
  assert.equal(all.length - 1 + lost, sent);
});

test('lines that come shortly after each other are sent together, also before the end', async (t) => {
  const clock = new FakeClock();
  let writes = 0;
  const response = await answerOf(t, (to) => {
    const lines = new LineStream(to, (count) => ({ lost: count }), clock);
    const write = to.write.bind(to);
    to.write = (piece: string | Uint8Array) => {
      writes++;
      return write(piece);
    };
    const run = async () => {
      lines.write({ n: 1 });
      await clock.advance(5);
      lines.write({ n: 2 });
      assert.equal(writes, 0);
      await clock.advance(5);
      assert.equal(writes, 1);
      lines.write({ n: 3 });
      lines.end();
    };
    void run();
  });
  assert.deepEqual((await text(response)).trim().split('\n'), ['{"n":1}', '{"n":2}', '{"n":3}']);
  assert.deepEqual([writes, clock.pending], [2, 0]);
});

test('a reader of lines that disconnects leaves no timer', async (t) => {
  const clock = new FakeClock();
  const response = await answerOf(t, (to) => {
    const lines = new LineStream(to, (count) => ({ lost: count }), clock);
    to.flushHeaders();
    lines.write({ n: 1 });
  });
  assert.equal(clock.pending, 1);
  response.destroy();
  await eventually('the timer is cancelled', () => clock.pending === 0);
});
