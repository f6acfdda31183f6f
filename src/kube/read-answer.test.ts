import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import { jsonEncoding } from './json-encoding.ts';
import { readAnswer } from './read-answer.ts';
import { StreamError } from './stream-error.ts';

async function* streamOf(...chunks: string[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

const timeSlice = () => new TimeSlice(systemClock, 5);
const added = (name: string) => JSON.stringify({ type: 'ADDED', object: { metadata: { name } } });

test('valid watch events before an invalid one are delivered', async () => {
  const seen: string[] = [];
  const stream = streamOf(`${added('a')}${added('b')}\x00`);
  const reading = readAnswer(stream, jsonEncoding.watch(), timeSlice(), (event) => {
    if (event.type === 'upsert') seen.push(event.object.name);
    return undefined;
  });
  await assert.rejects(reading, StreamError);
  assert.deepEqual(seen, ['a', 'b']);
});

test('the next part is taken when the promise of the last one is resolved', async () => {
  const steps: string[] = [];
  await readAnswer(streamOf(added('a'), added('b')), jsonEncoding.watch(), timeSlice(), async (event) => {
    const name = event.type === 'upsert' ? event.object.name : '';
    steps.push(`${name} begins`);
    await Promise.resolve();
    steps.push(`${name} ends`);
  });
  assert.deepEqual(steps, ['a begins', 'a ends', 'b begins', 'b ends']);
});

test('reading a list lets other work run in between', async () => {
  const endpoints = Array(20).fill({ addresses: ['10.0.0.1'] });
  const item = JSON.stringify({ metadata: { name: 'x'.repeat(50) }, endpoints });
  const chunk = `${item},`.repeat(200);
  const body = streamOf(
    '{"items":[',
    ...Array<string>(200).fill(chunk),
    `${item}],"metadata":{"resourceVersion":"7"}}`,
  );
  let turns = 0;
  let reading = true;
  const count = () => {
    turns++;
    if (reading) setImmediate(count);
  };
  setImmediate(count);
  let items = 0;
  const page = await readAnswer(body, jsonEncoding.list(), timeSlice(), () => {
    items++;
    return undefined;
  });
  reading = false;
  assert.deepEqual(page, { version: '7', next: '' });
  assert.equal(items, 200 * 200 + 1);
  assert.ok(turns > 2, `the event loop turned ${turns} times`);
});
