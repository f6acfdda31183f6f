import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Bytes, HttpResponse } from './response.ts';

test('a body that is not text is sent as it is, without a copy', () => {
  const sent: Bytes[] = [];
  const request = { method: 'GET', url: '/', minor: 1, headers: new Map() };
  const response = new HttpResponse(request, true, {
    date: 'Thu, 01 Jan 2026 00:00:00 GMT',
    send: (bytes) => sent.push(...bytes),
    ended: () => {},
  });
  const page = Buffer.alloc(50_000);
  response.writeHead(200, { 'Content-Length': page.length }).end(page);
  assert.equal(sent.length, 2);
  assert.match(String(sent[0]), /^HTTP\/1.1 200 OK\r\n.*\r\n\r\n$/s);
  assert.equal(sent[1], page);
});
