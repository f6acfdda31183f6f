import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../test/eventually.ts';
import { serveHttp } from '../../test/serve-http.ts';
import type { HttpResponse } from '../http/response.ts';
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
    const lines = new LineStream(to, (count) => ({ lost: count }));
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

test('lines of the same moment are sent together, also before the end', async (t) => {
  const sent = 100;
  let writes = 0;
  const response = await answerOf(t, (to) => {
    const lines = new LineStream(to, (count) => ({ lost: count }));
    const write = to.write.bind(to);
    to.write = (piece: string | Uint8Array) => {
      writes++;
      return write(piece);
    };
    for (let i = 0; i < sent; i++) lines.write({ n: i });
    queueMicrotask(() => {
      lines.write({ n: sent });
      lines.end();
    });
  });
  const received = (await text(response)).trim().split('\n');
  assert.deepEqual(JSON.parse(received.at(-1) ?? ''), { n: sent });
  assert.deepEqual([received.length, writes], [sent + 1, 2]);
});
