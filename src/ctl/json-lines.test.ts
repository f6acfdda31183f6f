import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flowEvent, flowItem } from '../../test/ctl/traffic-server.ts';
import type { FlowEvent } from '../inspect/traffic-api.ts';
import { jsonLines } from './json-lines.ts';

/** The lists of events in an answer that comes in these pieces. */
async function eventsIn(...pieces: readonly string[]): Promise<(readonly FlowEvent[])[]> {
  async function* answer(): AsyncGenerator<string> {
    yield* pieces;
  }
  const lists: (readonly FlowEvent[])[] = [];
  for await (const list of jsonLines(answer())) lists.push(list);
  return lists;
}

const opened = flowEvent('Opened', flowItem('10.0.0.1:1'));
const line = `${JSON.stringify(opened)}\n`;

test('lines are read also when they are cut anywhere; those that come together are one list', async () => {
  const text = line + line + line;
  for (const cut of [0, 1, line.length - 1, line.length, line.length + 1, 2 * line.length + 7]) {
    const lists = await eventsIn(text.slice(0, cut), text.slice(cut));
    assert.deepEqual(lists.flat(), [opened, opened, opened]);
  }
  assert.equal((await eventsIn(line + line)).length, 1);
});

test('blank lines and a last line that is not complete are no events', async () => {
  assert.deepEqual(await eventsIn('\n\r\n', '{"apiVersion"'), []);
});

for (const [bad, complaint] of [
  ['{"apiVersion\n', /a line of the answer is not JSON: "\{\\"apiVersion"/],
  ['null\n', /a line of the answer is no FlowEvent of inspect\.kube-proxy-ts\/v1: "null"/],
  ['[]\n', /no FlowEvent/],
  [`${JSON.stringify({ ...opened, apiVersion: 'v9' })}\n`, /no FlowEvent/],
  ['x'.repeat(1_000_001), /a line of the answer is longer than 1000000 characters/],
] as const) {
  test(`a stream with ${JSON.stringify(bad.slice(0, 20))} is one clear error`, async () => {
    await assert.rejects(eventsIn(bad), complaint);
  });
}
