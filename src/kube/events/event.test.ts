import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type EventInput, eventBody, microTime, seriesKey } from './event.ts';

const starting: EventInput = {
  regarding: { apiVersion: 'v1', kind: 'Node', name: 'node-a' },
  type: 'Normal',
  reason: 'Starting',
  action: 'StartKubeProxy',
  note: '',
};
const at = 1_792_036_600_401_202_003n;

for (const mode of ['iptables', 'nftables']) {
  test(`an event has the shape recorded in ${mode} mode`, () => {
    const file = new URL(`../../../test/vectors/pages/${mode}.json`, import.meta.url);
    const recorded: unknown[] = JSON.parse(readFileSync(file, 'utf8')).events;
    const { metadata, ...body } = eventBody(starting, 'vm', at);
    assert.deepEqual(metadata, { name: `node-a.${at.toString(16)}`, namespace: 'default' });
    assert.match(body.eventTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    assert.equal(recorded.length, 1);
    assert.deepEqual([{ ...Object(recorded[0]), eventTime: body.eventTime }], [body]);
  });
}

test('an event about a namespaced object lives beside it and carries its note', () => {
  const regarding = { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'front' };
  const body = eventBody({ ...starting, regarding, note: 'port taken' }, 'h', at);
  assert.equal(body.metadata.namespace, 'shop');
  assert.deepEqual(body.regarding, regarding);
  assert.equal(body.note, 'port taken');
});

test('times have six decimals', () => {
  assert.equal(microTime(1_792_036_600_401_202_999n), '2026-10-15T03:56:40.401202Z');
  assert.equal(microTime(1_792_036_600_000_000_000n), '2026-10-15T03:56:40.000000Z');
  assert.equal(microTime(1_792_036_600_000_007_000n), '2026-10-15T03:56:40.000007Z');
});

for (const name of ['Node_A', 'a..b', '-a', 'x'.repeat(240)]) {
  test(`a name that would not be a DNS subdomain becomes a UUID: ${name.slice(0, 10)}`, () => {
    const body = eventBody({ ...starting, regarding: { ...starting.regarding, name } }, 'h', at);
    assert.match(body.metadata.name, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
}

test('a note that the API server would refuse is cut, between characters', () => {
  const note = (text: string) => eventBody({ ...starting, note: text }, 'h', at).note ?? '';
  assert.equal(note('x'.repeat(1024)), 'x'.repeat(1024));
  assert.equal(note('x'.repeat(1025)), 'x'.repeat(1024));
  assert.equal(note(`x${'é'.repeat(600)}`), `x${'é'.repeat(511)}`);
});

test('series differ by everything but the note', () => {
  const key = seriesKey(starting);
  assert.equal(seriesKey({ ...starting, note: 'other' }), key);
  const regarding = starting.regarding;
  const others: EventInput[] = [
    { ...starting, type: 'Warning' },
    { ...starting, reason: 'x' },
    { ...starting, action: 'x' },
    { ...starting, regarding: { ...regarding, name: 'x' } },
    { ...starting, regarding: { ...regarding, namespace: 'x' } },
    { ...starting, regarding: { ...regarding, kind: 'x' } },
    { ...starting, regarding: { ...regarding, apiVersion: 'x' } },
  ];
  assert.equal(new Set([key, ...others.map(seriesKey)]).size, others.length + 1);
});
