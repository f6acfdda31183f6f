import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import { silentLogger } from '../obs/log.ts';
import { JsonObject } from './json-encoding.ts';
import { ObjectIntake } from './object-intake.ts';

function setup() {
  const logged: unknown[] = [];
  const intake = new ObjectIntake({
    resource: 'services',
    sink: { upsert() {}, remove() {}, synced() {} },
    intern: (text) => text,
    logger: { ...silentLogger, error: (_error, _message, said) => logged.push(said?.object) },
  });
  let version = 0;
  const list = async (...names: string[]) => {
    intake.beginListing();
    for (const name of names) intake.upsert(misshapen(name));
    await intake.endListing(String(++version), new TimeSlice(new FakeClock()));
  };
  return { intake, list, logged };
}

const misshapen = (name: string) =>
  new JsonObject({ metadata: { name, namespace: 'n', resourceVersion: '1' }, spec: 5 });

test('an object that cannot be decoded is logged once, also over several lists', async () => {
  const { intake, list, logged } = setup();
  await list('a', 'b');
  intake.upsert(misshapen('a'));
  await list('a', 'b');
  await list('b', 'a');
  assert.deepEqual(logged, ['n/a', 'n/b']);
});

test('an object that cannot be decoded is forgotten when a list does not contain it', async () => {
  const { intake, list, logged } = setup();
  await list('a', 'b');
  await list('b');
  intake.upsert(misshapen('a'));
  intake.upsert(misshapen('b'));
  assert.deepEqual(logged, ['n/a', 'n/b', 'n/a']);
});

test('an incomplete list removes nothing', async () => {
  const { intake, list, logged } = setup();
  await list('a');
  intake.beginListing();
  await list('a');
  assert.deepEqual(logged, ['n/a']);
});
