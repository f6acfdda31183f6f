import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { serveHttp } from '../../test/serve-http.ts';
import { reply } from '../lib/http.ts';
import type { RequestListener } from './exchange.ts';

/** Answers with the target and the body of the request; below /ignored, without reading the body. */
const echo: RequestListener = (request, response) => {
  if (request.url.startsWith('/ignored')) return reply(response, 200, {}, `<${request.url}>`);
  request.body().then(
    (body) => reply(response, 200, {}, `<${request.url} ${body}>`),
    () => response.destroy(),
  );
};

/** Sends the pieces in turns of the event loop, then the end. Resolves to everything that the server sent. */
async function exchange(port: number, pieces: readonly string[]): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true }).setEncoding(
    'latin1',
  );
  let received = '';
  socket.on('data', (text) => {
    received += text;
  });
  const closed = new Promise((resolve) => socket.on('error', () => socket.destroy()).on('close', resolve));
  for (const piece of pieces) {
    socket.write(piece, 'latin1');
    await turn();
  }
  socket.end();
  await closed;
  return received;
}

/** Cuts a text at positions between 0 and 1. */
function cut(text: string, positions: readonly number[]): string[] {
  const at = positions.map((position) => Math.floor(position * text.length)).sort((a, b) => a - b);
  return [0, ...at].map((from, i) => text.slice(from, at[i] ?? text.length)).filter((piece) => piece !== '');
}

const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 });
const newline = fc.constantFrom('\r\n', '\n');

interface Sent {
  readonly text: string;
  readonly isIgnored: boolean;
  readonly body: string;
}

const sentRequest: fc.Arbitrary<Sent> = fc
  .record({
    isIgnored: fc.boolean(),
    encoding: fc.constantFrom('none', 'length', 'chunks'),
    chunks: fc.array(fc.string({ minLength: 1, maxLength: 30, unit: 'grapheme-ascii' }), { maxLength: 4 }),
    end: newline,
  })
  .map(({ isIgnored, encoding, chunks, end }) => {
    const body = encoding === 'none' ? '' : chunks.join('');
    const fields = {
      none: [],
      length: [`Content-Length: ${body.length}`],
      chunks: ['Transfer-Encoding: chunked'],
    }[encoding];
    const sizes = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    const payload = encoding === 'chunks' ? `${sizes.join('')}0\r\n\r\n` : body;
    const target = isIgnored ? '/ignored' : '/read';
    const head = [`PUT ${target}/NUMBER HTTP/1.1`, 'Host: x', ...fields, '', ''].join(end);
    return { text: head + payload, isIgnored, body };
  });

test('requests that come in pieces of any size are answered completely and in their order', async (t) => {
  const { port } = await serveHttp(t, echo);
  const requests = fc.array(sentRequest, { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(requests, cuts, async (sent, positions) => {
      const last = 'GET /ignored/last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
      const text = sent.map((request, i) => request.text.replace('NUMBER', String(i))).join('') + last;
      const wanted = sent.map(({ isIgnored, body }, i) =>
        isIgnored ? `</ignored/${i}>` : `</read/${i} ${body}>`,
      );
      const received = await exchange(port, cut(text, positions));
      const bodies = received.split(
        /HTTP\/1\.1 200 OK\r\nDate: [^\r]*\r\nContent-Length: \d+\r\n(?:Connection: close\r\n)?\r\n/,
      );
      assert.deepEqual(bodies, ['', ...wanted, '</ignored/last>']);
    }),
    { numRuns: 150 },
  );
});

const fragment = fc.oneof(
  fc.constantFrom(
    'GET / HTTP/1.1',
    'PUT /read HTTP/1.0',
    '\r\n',
    '\n',
    '\r\n\r\n',
    ' ',
    ':',
    '\0',
    'Host: x',
  ),
  fc.constantFrom(
    'Content-Length: 5',
    'Content-Length: 99999999',
    'Transfer-Encoding: chunked',
    'Expect: 100-continue',
  ),
  fc.constantFrom(
    '5\r\nabcde\r\n',
    '0\r\n\r\n',
    'fffffffffff\r\n',
    'Connection: close',
    'Connection: keep-alive',
  ),
  fc.string({ unit: 'binary-ascii', maxLength: 10 }),
);

test('whatever a client sends, its connection ends when it has ended, and others are served', async (t) => {
  const { port, url } = await serveHttp(t, echo);
  await fc.assert(
    fc.asyncProperty(fc.array(fragment, { maxLength: 30 }), cuts, async (fragments, positions) => {
      const received = await exchange(port, cut(fragments.join(''), positions));
      assert.match(received, /^(HTTP\/1\.[01] (100|200|400|417|431|501|505) |$)/);
    }),
    { numRuns: 300 },
  );
  assert.equal(await (await fetch(`${url}/ignored`)).text(), '</ignored>');
});
