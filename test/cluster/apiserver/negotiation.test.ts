import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { http } from '../../../src/lib/http.ts';
import { apiService } from '../objects.ts';
import { negotiate, type ProtobufSupport } from './negotiation.ts';
import { startApiServer } from './server.ts';

const protobuf = 'application/vnd.kubernetes.protobuf';
const json = 'application/json';

describe('the encoding', () => {
  const cases: [accept: string, support: ProtobufSupport, chosen: string | number][] = [
    ['', 'served', json],
    ['*/*', 'served', json],
    [protobuf, 'served', protobuf],
    [`${protobuf}, */*`, 'served', protobuf],
    [`*/*, ${protobuf}`, 'served', protobuf],
    [`${protobuf},${json}`, 'served', protobuf],
    [`${json},${protobuf}`, 'served', json],
    [`${json};q=0.5,${protobuf}`, 'served', protobuf],
    [`${protobuf};q=0.5,${json};q=0.9`, 'served', json],
    [`${protobuf};stream=watch`, 'served', protobuf],
    [`${protobuf};as=Table,${json}`, 'served', json],
    ['application/*', 'served', json],
    ['text/html', 'served', 406],
    [`${protobuf},${json}`, 'unknown', json],
    [protobuf, 'unknown', 406],
    [protobuf, 'ignored', json],
    [`${protobuf},${json}`, 406, 406],
    [`${protobuf},${json}`, 415, 415],
    [json, 406, json],
  ];
  for (const [accept, support, chosen] of cases) {
    test(`for "${accept}" when protobuf is ${support} is ${chosen}`, () => {
      if (typeof chosen === 'number') assert.throws(() => negotiate(accept, support), { code: chosen });
      else assert.equal(negotiate(accept, support).mediaType, chosen);
    });
  }
});

interface Answer {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly packed: boolean;
  readonly body: Buffer;
}

function get(url: string, headers: Record<string, string>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { headers, agent: false }, async (response) => {
      const pieces: Buffer[] = [];
      for await (const piece of response) pieces.push(piece);
      resolve({
        status: response.statusCode,
        type: response.headers['content-type'],
        packed: response.headers['content-encoding'] === 'gzip',
        body: Buffer.concat(pieces),
      });
    });
    request.on('error', reject);
  });
}

describe('an answer', () => {
  test('in protobuf holds the objects of the answer in JSON', async () => {
    const server = await startApiServer();
    for (let i = 0; i < 3; i++) server.put('services', apiService(`svc-${i}`));
    const url = `${server.url}/api/v1/services`;
    const [asJson, asProtobuf] = await Promise.all([get(url, {}), get(url, { accept: protobuf })]);
    await server.close();
    assert.equal(asJson.type, json);
    assert.equal(asProtobuf.type, protobuf);
    assert.equal(asProtobuf.body.toString('latin1', 0, 4), 'k8s\0');
    for (const { metadata } of JSON.parse(asJson.body.toString()).items) {
      assert.ok(asProtobuf.body.includes(metadata.name));
    }
  });

  test('that is an error has the encoding of the request', async () => {
    const server = await startApiServer();
    const url = `${server.url}/api/v1/nodes/absent`;
    const [asJson, asProtobuf] = await Promise.all([get(url, {}), get(url, { accept: protobuf })]);
    await server.close();
    assert.deepEqual([asJson.status, asJson.type], [404, json]);
    assert.deepEqual([asProtobuf.status, asProtobuf.type], [404, protobuf]);
    assert.ok(asProtobuf.body.includes('NotFound'));
  });

  test('is compressed if it is large and the client asks for it', async () => {
    const server = await startApiServer();
    server.put('services', apiService('svc-0'));
    const url = `${server.url}/api/v1/services`;
    const small = await get(url, { 'accept-encoding': 'gzip' });
    for (let i = 1; i < 1000; i++) server.put('services', apiService(`svc-${i}`));
    const large = await get(url, { 'accept-encoding': 'gzip' });
    const plain = await get(url, { 'accept-encoding': 'identity' });
    await server.close();
    assert.deepEqual([small.packed, large.packed, plain.packed], [false, true, false]);
    assert.deepEqual(gunzipSync(large.body), plain.body);
  });

  test('that begins with a list is compressed event by event if the client asks for it', async () => {
    const server = await startApiServer();
    server.put('services', apiService('svc-0'));
    const watch = `${server.url}/api/v1/services?watch=true&timeoutSeconds=0`;
    const headers = { 'accept-encoding': 'gzip' };
    const list = await get(`${watch}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`, headers);
    const changes = await get(`${watch}&resourceVersion=1000`, headers);
    await server.close();
    assert.deepEqual([list.packed, changes.packed], [true, false]);
    assert.equal(gunzipSync(list.body).toString().trim().split('\n').length, 2);
  });
});
